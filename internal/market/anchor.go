package market

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/internal/fault"
)

// Anchor is the address of an addressable event (NIP-01), the value of an a tag.
type Anchor struct {
	Kind int
	// PubKey is 64 lower-case hex digits.
	PubKey string
	// Identifier is the value of the d tag; it may hold colons and may be empty.
	Identifier string
}

// String returns kind:pubkey:identifier.
func (a Anchor) String() string {
	return strconv.Itoa(a.Kind) + ":" + a.PubKey + ":" + a.Identifier
}

// ParseAnchor reads kind:pubkey:identifier, naddr1… or nostr:naddr1… (NIP-19,
// NIP-21). Anything else is invalid_input; the caller adds the path. Whoever
// looks a listing up uses its own kind, whatever kind the anchor names
// (spec 40 §3).
func ParseAnchor(text string) (Anchor, error) {
	trimmed := strings.TrimSpace(text)
	const scheme = "nostr:"
	if len(trimmed) > len(scheme) && strings.EqualFold(trimmed[:len(scheme)], scheme) {
		trimmed = trimmed[len(scheme):]
	}
	anchor, err := parsePlainAnchor(trimmed)
	if strings.HasPrefix(strings.ToLower(trimmed), "naddr1") {
		anchor, err = decodeAddress(trimmed)
	}
	if err != nil {
		return Anchor{}, fault.New(fault.InvalidInput, "%.120q is not an anchor: %w", text, err).
			WithHint("30402:<pubkey in hex>:<d tag>, or naddr1…").
			WithDetails(inputReason{Reason: "format"})
	}
	return anchor, nil
}

// inputReason are the details of an invalid_input failure (spec 30 §11).
type inputReason struct {
	Reason string `json:"reason"`
}

func parsePlainAnchor(text string) (Anchor, error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return Anchor{}, errors.New("it needs the three parts kind:pubkey:identifier")
	}
	kind, err := strconv.ParseUint(parts[0], 10, 16)
	if err != nil {
		return Anchor{}, errors.New("its first part must be a kind number")
	}
	pubkey := strings.ToLower(parts[1])
	if raw, err := hex.DecodeString(pubkey); err != nil || len(raw) != 32 {
		return Anchor{}, errors.New("its second part must be a pubkey of 64 hex digits")
	}
	return Anchor{Kind: int(kind), PubKey: pubkey, Identifier: parts[2]}, nil
}

// maxAddress is far above the longest naddr that names a listing and some relays.
const maxAddress = 5000

// decodeAddress guards the library's decoder, which panics on a kind field of
// fewer than four bytes (spec 82 §10.5).
func decodeAddress(naddr string) (anchor Anchor, err error) {
	if len(naddr) > maxAddress {
		return Anchor{}, errors.New("it is longer than any address")
	}
	defer func() {
		if problem := recover(); problem != nil {
			anchor, err = Anchor{}, fmt.Errorf("its fields are malformed: %v", problem)
		}
	}()
	_, value, err := nip19.Decode(naddr)
	if err != nil {
		return Anchor{}, err
	}
	entity, ok := value.(nostr.EntityPointer)
	if !ok || entity.Kind > math.MaxUint16 || !utf8.ValidString(entity.Identifier) {
		return Anchor{}, errors.New("it names no addressable event")
	}
	return Anchor{Kind: entity.Kind, PubKey: entity.PublicKey, Identifier: entity.Identifier}, nil
}
