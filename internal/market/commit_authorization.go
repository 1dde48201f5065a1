package market

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nbd-wtf/go-nostr"
)

// CommitAuthorization is a seller's signature over the terms of an order, kind
// 1328, carried inside the order (spec 50 §5).
type CommitAuthorization struct {
	// Event is the event as found; it must not be changed.
	Event           *nostr.Event
	Version         int64
	CommitHash      string
	HashAlgorithm   string
	CommittedFields []string
	Role            Role
}

const (
	authorizationVersion = 1
	hashAlgorithm        = "sha256"
)

// DecodeCommitAuthorization reads the content. The kind and the signature are
// not checked, see CheckCommitAuthorization.
func DecodeCommitAuthorization(event *nostr.Event) (CommitAuthorization, error) {
	fields, err := readFields(event.Content)
	if err != nil {
		return CommitAuthorization{}, err
	}
	authorization := CommitAuthorization{
		Event:           event,
		Version:         fields.integerOr("version", authorizationVersion),
		CommitHash:      fields.text("commitHash"),
		HashAlgorithm:   hashAlgorithm,
		CommittedFields: committedFields,
		Role:            RoleSeller,
	}
	if fields.has("hashAlg") {
		authorization.HashAlgorithm = fields.text("hashAlg")
	}
	if fields.has("committedFields") {
		authorization.CommittedFields = fields.texts("committedFields")
	}
	if fields.has("role") {
		authorization.Role = Role(fields.text("role"))
	}
	return authorization, fields.problem
}

// DraftCommitAuthorization returns the unsigned event by which the listing's
// owner agrees to the terms.
func DraftCommitAuthorization(seller, listingAnchor, tradeID string, terms OrderContent, now nostr.Timestamp) *nostr.Event {
	text := appendQuoted([]byte(`{"version":1,"commitHash":`), terms.CommitHash())
	text = appendQuoted(append(text, `,"hashAlg":`...), hashAlgorithm)
	text = appendTexts(append(text, `,"committedFields":`...), committedFields)
	text = append(appendQuoted(append(text, `,"role":`...), string(RoleSeller)), '}')
	return draft(seller, KindCommitAuthorization, now, string(text), nostr.Tags{{"a", listingAnchor}, {"d", tradeID}})
}

// CheckCommitAuthorization returns nil when the order carries the seller's
// signature over its terms, else why it does not.
func (o Order) CheckCommitAuthorization() error {
	return checkCommitAuthorization(o.CommitAuthorization, o.ListingAnchor, o.TradeID, o.OrderContent)
}

func checkCommitAuthorization(event *nostr.Event, listingAnchor, tradeID string, terms OrderContent) error {
	if event == nil || tradeID == "" {
		return errors.New("the order has no authorization or no trade id")
	}
	authorization, err := DecodeCommitAuthorization(event)
	if err != nil {
		return fmt.Errorf("the authorization cannot be read: %w", err)
	}
	listing, ok := exactAnchor(listingAnchor)
	anchor, _ := firstValue(event.Tags, "a")
	trade, _ := firstValue(event.Tags, "d")
	switch {
	case !ok || event.PubKey != listing.PubKey:
		return errors.New("the authorization is not by the owner of the listing")
	case !IsSigned(event):
		return errors.New("the authorization is not signed")
	case anchor != listingAnchor:
		return errors.New("the authorization is for another listing")
	case trade != tradeID:
		return errors.New("the authorization is for another trade")
	case authorization.CommitHash != terms.CommitHash():
		return errors.New("the authorization is for other terms")
	case authorization.HashAlgorithm != hashAlgorithm:
		return fmt.Errorf("the authorization is hashed with %.20q", authorization.HashAlgorithm)
	case !sameSet(authorization.CommittedFields, committedFields):
		return errors.New("the authorization covers other fields")
	case authorization.Role != RoleSeller:
		return errors.New("the authorization is not a seller's")
	}
	return nil
}

func sameSet(a, b []string) bool {
	normalize := func(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }
	return slices.Equal(normalize(a), normalize(b))
}
