package sellers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/derivation"
)

const (
	addressPrefix = "evm:address:"
	proofPrefix   = "eip191:"
)

// offer is what the account offers now.
type offer struct {
	// author is the account.
	author string
	// escrows are trusted operators, hashes those of the contracts' code.
	escrows, hashes []string
	forms           []paymentForm
	// swapsUnknown is true when forms may be missing because the swap provider could
	// not be asked.
	swapsUnknown bool
	// address is the EVM address in EIP-55, proof the signature that it is the author's.
	address, proof string
}

// compose returns the tags of the configuration that follows the current one, which
// may be nil, and whether it says anything new (spec 20 §9 steps 7 and 8). What is
// there of escrows and contracts stays, and so does what other clients have written.
func (o offer) compose(current *nostr.Event) (tags nostr.Tags, changed bool) {
	if current == nil {
		current, changed = &nostr.Event{}, true
	}
	there := readMethod(current)
	missingEscrows, missingHashes := absent(o.escrows, there.escrows), absent(o.hashes, there.hashes)
	forms := o.follow(there.forms)
	changed = changed || len(missingEscrows) > 0 || len(missingHashes) > 0 || !sameForms(there.forms, forms) ||
		!strings.EqualFold(there.address, o.address) || !there.isProved()

	tags = slices.DeleteFunc(slices.Clone(current.Tags), func(tag nostr.Tag) bool {
		return len(tag) > 0 && tag[0] == "o" || isAddressClaim(tag)
	})
	for _, escrow := range missingEscrows {
		tags = append(tags, nostr.Tag{"p", escrow})
	}
	for _, hash := range missingHashes {
		tags = append(tags, nostr.Tag{"c", hash})
	}
	for _, form := range forms {
		tags = append(tags, form.tag())
	}
	return append(tags, nostr.Tag{"i", addressPrefix + o.address, proofPrefix + o.proof}), changed
}

// follow returns the forms that follow the ones there. Forms of other clients are
// kept, ours replaced; but while it is not known what ours are they stay as they are.
func (o offer) follow(there []paymentForm) []paymentForm {
	switch {
	case o.swapsUnknown && slices.ContainsFunc(there, paymentForm.isHostr):
		return there
	case o.swapsUnknown:
		return append(slices.Clone(there), o.forms...)
	case len(o.forms) == 0:
		return slices.DeleteFunc(slices.Clone(there), func(f paymentForm) bool { return !f.hasApp })
	default:
		foreign := slices.DeleteFunc(slices.Clone(there), func(f paymentForm) bool { return !f.isForeign() })
		return append(foreign, o.forms...)
	}
}

// absent returns the wanted values that are not among those there, each once.
func absent(wanted, there []string) []string {
	var missing []string
	for _, value := range wanted {
		if normal := normalValue(value); normal != "" && !slices.Contains(there, normal) && !slices.Contains(missing, normal) {
			missing = append(missing, normal)
		}
	}
	return missing
}

// method is what a published configuration says (spec 70 §4).
type method struct {
	author          string
	escrows, hashes []string
	forms           []paymentForm
	// address is as written, proof without its prefix; both are empty where there is
	// none.
	address, proof string
}

func readMethod(event *nostr.Event) method {
	read := method{author: event.PubKey}
	for _, tag := range event.Tags {
		if form, ok := readForm(tag); ok {
			read.forms = append(read.forms, form)
		}
		switch {
		case len(tag) < 2:
		case tag[0] == "p":
			read.escrows = append(read.escrows, normalValue(tag[1]))
		case tag[0] == "c":
			read.hashes = append(read.hashes, normalValue(tag[1]))
		case isAddressClaim(tag): // the last one counts
			read.address, read.proof = strings.TrimPrefix(tag[1], addressPrefix), ""
			if len(tag) > 2 {
				read.proof = strings.TrimPrefix(tag[2], proofPrefix)
			}
		}
	}
	return read
}

// isProved reports whether the address is shown to be the author's. A proof that
// does not hold is none: guests would refuse to pay.
func (m method) isProved() bool {
	signer, err := derivation.PersonalSigner(ownershipMessage(m.author, m.address), m.proof)
	return err == nil && strings.EqualFold(signer, m.address)
}

func isAddressClaim(tag nostr.Tag) bool {
	return len(tag) > 1 && tag[0] == "i" && strings.HasPrefix(tag[1], addressPrefix)
}

func normalValue(value string) string { return strings.ToLower(strings.TrimSpace(value)) }

// ownershipMessage is what the owner of an EVM address signs for an account (spec 20
// §9 step 5).
func ownershipMessage(author, address string) []byte {
	return fmt.Appendf(nil, "EVM address ownership proof\nnostr:%s\nevm:address:%s", author, address)
}
