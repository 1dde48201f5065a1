package market

import (
	"errors"
	"fmt"

	"github.com/nbd-wtf/go-nostr"
)

// ParticipantProof is a participant_proof tag: who stands behind a participant
// of an order, encrypted to one recipient (spec 50 §6).
type ParticipantProof struct {
	Role Role
	// Participant is the pubkey in the p tag, Recipient the one that can decrypt.
	Participant string
	Recipient   string
	// Scheme is nip44.
	Scheme string
	// PayloadHash is the SHA-256 of the plaintext in hex.
	PayloadHash string
	// Payload is ciphertext between the order's author and the recipient.
	Payload string
}

const (
	participantProofTag = "participant_proof"
	proofScheme         = "nip44"
)

// Encrypt is NIP-44 encryption with the order author's private key.
type Encrypt func(recipient, plaintext string) (string, error)

// Decrypt is NIP-44 decryption with the private key of the recipient, who is one
// of us, of what the sender wrote. The payload is a stranger's: the function
// must be guarded as spec 82 §10.5 says.
type Decrypt func(recipient, sender, payload string) (string, error)

// PlannedParticipant is a participant of an order that is being built.
type PlannedParticipant struct {
	Role Role
	// Pubkey stands in the order, Identity is whose it is: the same unless the
	// participant uses a trade key.
	Pubkey   string
	Identity string
	// RelayHint may be empty.
	RelayHint string
	// Authorization is the JSON text of the signed authorization, required when
	// the participant is hidden. A reused one must be byte for byte the same.
	Authorization string
}

// Hidden reports whether the participant needs an authorization and proofs.
func (p PlannedParticipant) Hidden() bool { return p.Pubkey != p.Identity }

// PlanParticipants returns the p tags and then the participant_proof tags of an
// order, in the order of the participants (spec 50 §6.2). Encrypt may be nil when
// nobody is hidden. The error is that of encrypt or names what is missing.
func PlanParticipants(participants []PlannedParticipant, encrypt Encrypt) (nostr.Tags, error) {
	if len(participants) == 0 {
		return nil, errors.New("an order needs participants")
	}
	var tags nostr.Tags
	for _, participant := range participants {
		if participant.Role == "" || participant.Pubkey == "" || participant.Identity == "" {
			return nil, fmt.Errorf("a participant of the order lacks its role or a pubkey (role %q)", participant.Role)
		}
		tags = append(tags, nostr.Tag{"p", participant.Pubkey, participant.RelayHint, string(participant.Role)})
	}
	for _, hidden := range participants {
		if !hidden.Hidden() {
			continue
		}
		if hidden.Authorization == "" || encrypt == nil {
			return nil, fmt.Errorf("the trade key of the %s needs an authorization and its private key", hidden.Role)
		}
		for _, recipient := range participants {
			payload, err := encrypt(recipient.Pubkey, hidden.Authorization)
			if err != nil {
				return nil, fmt.Errorf("encrypting the authorization of the %s for the %s: %w", hidden.Role, recipient.Role, err)
			}
			tags = append(tags, nostr.Tag{
				participantProofTag, string(hidden.Role), hidden.Pubkey, recipient.Pubkey,
				proofScheme, sha256Hex(hidden.Authorization), payload,
			})
		}
	}
	return tags, nil
}

// OpenedProof is a proof that was decrypted and found to hold.
type OpenedProof struct {
	TradeKeyAuthorization
	// Plaintext is the authorization exactly as it was encrypted.
	Plaintext string
}

// OpenProof decrypts one proof of the order and checks it (spec 50 §6.3). The
// caller controls the proof's recipient. Every error means that the proof counts
// for nothing; only when it is in the chain of decrypt's own may another attempt
// end differently.
func (o Order) OpenProof(proof ParticipantProof, decrypt Decrypt) (OpenedProof, error) {
	if proof.Scheme != proofScheme || proof.Participant == "" || proof.Recipient == "" {
		return OpenedProof{}, fmt.Errorf("the proof has the scheme %.20q or lacks a pubkey", proof.Scheme)
	}
	plaintext, err := decrypt(proof.Recipient, o.Event.PubKey, proof.Payload)
	if err != nil {
		return OpenedProof{}, fmt.Errorf("decrypting the proof: %w", err)
	}
	if sha256Hex(plaintext) != proof.PayloadHash {
		return OpenedProof{}, errors.New("the proof's hash is not that of its payload")
	}
	authorization, err := o.checkAuthorization(plaintext, proof.Participant, proof.Role)
	if err != nil {
		return OpenedProof{}, err
	}
	return OpenedProof{TradeKeyAuthorization: authorization, Plaintext: plaintext}, nil
}

// checkAuthorization reads an authorization that must hold for a participant of
// this order; whose it is, it says itself.
func (o Order) checkAuthorization(text, participant string, role Role) (TradeKeyAuthorization, error) {
	event, err := DecodeEmbeddedEvent(text)
	if err != nil {
		return TradeKeyAuthorization{}, err
	}
	authorization, err := DecodeTradeKeyAuthorization(event)
	if err != nil {
		return TradeKeyAuthorization{}, err
	}
	terms := TradeKeyTerms{
		Identity: event.PubKey, Participant: participant, Role: role, ListingAnchor: o.ListingAnchor, TradeID: o.TradeID,
	}
	if !authorization.Authorizes(terms) {
		return TradeKeyAuthorization{}, errors.New("the authorization is not signed or is for another trade key")
	}
	return authorization, nil
}

// ReusableAuthorization returns the text of the first authorization of these
// terms that a proof of the orders holds, addressed to the trade key itself
// (spec 50 §6.4); false when there is none. Decrypt has the trade key's private
// key. What cannot be opened is passed over.
func ReusableAuthorization(orders []Order, terms TradeKeyTerms, decrypt Decrypt) (string, bool) {
	for _, order := range orders {
		if opened, ok := order.findProof(terms, terms.Participant, decrypt); ok {
			return opened.Plaintext, true
		}
	}
	return "", false
}

// findProof opens the proofs for a recipient until one holds for these terms.
func (o Order) findProof(terms TradeKeyTerms, recipient string, decrypt Decrypt) (OpenedProof, bool) {
	for _, proof := range o.Proofs {
		if proof.Participant != terms.Participant || proof.Recipient != recipient || proof.Role != terms.Role {
			continue
		}
		if opened, err := o.OpenProof(proof, decrypt); err == nil && opened.TradeKeyTerms == terms {
			return opened, true
		}
	}
	return OpenedProof{}, false
}

func readParticipantProof(tag nostr.Tag) (ParticipantProof, bool) {
	if len(tag) < 7 || tag[0] != participantProofTag {
		return ParticipantProof{}, false
	}
	return ParticipantProof{
		Role: Role(tag[1]), Participant: tag[2], Recipient: tag[3], Scheme: tag[4], PayloadHash: tag[5], Payload: tag[6],
	}, true
}
