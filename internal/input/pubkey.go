package input

import (
	"strings"

	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/internal/fault"
)

const pubkeyHint = "64 hex digits or npub1…"

// ParsePubkey reads a Nostr public key: 64 hex digits of any case, or npub1…
// (NIP-19). It returns lower-case hex digits. Anything else is invalid_input.
func ParsePubkey(text string) (string, error) {
	pubkey, ok := parsePubkey(strings.TrimSpace(text))
	if !ok {
		problem := Problem{
			Code: fault.InvalidInput, Reason: ReasonFormat, Hint: pubkeyHint,
			Message: "a public key must be " + notAPubkey(text),
		}
		return "", problem.fault().WithDetails(Details{Reason: ReasonFormat})
	}
	return pubkey, nil
}

// Pubkey reads a public key as ParsePubkey does; absent is empty.
func (p Property) Pubkey() string {
	text, ok := p.text()
	if !ok || text == "" {
		return ""
	}
	return p.pubkeyOf(text)
}

// Pubkeys reads a list of public keys as TextList reads texts.
func (p Property) Pubkeys() []string {
	var pubkeys []string
	for _, item := range p.textItems(pubkeyTexts) {
		if pubkey := p.at(item.index).pubkeyOf(item.text); pubkey != "" {
			pubkeys = append(pubkeys, pubkey)
		}
	}
	return pubkeys
}

func (p Property) pubkeyOf(text string) string {
	pubkey, ok := parsePubkey(text)
	if ok {
		return pubkey
	}
	problem := Problem{
		Code: p.code, Reason: ReasonFormat, Path: p.path, Hint: pubkeyHint,
		Message: p.path + " must be a public key: " + notAPubkey(text),
	}
	if p.code == fault.InvalidNPub {
		problem.npub = shown(text)
	}
	p.reader.problems.add(problem)
	return ""
}

func parsePubkey(text string) (string, bool) {
	if lower := strings.ToLower(text); isHex64(lower) {
		return lower, true
	}
	// An npub has 63 characters; nothing longer is worth decoding.
	if len(text) > 100 || len(text) < len("npub1") || !strings.EqualFold(text[:len("npub1")], "npub1") {
		return "", false
	}
	prefix, value, err := nip19.Decode(text)
	pubkey, isText := value.(string)
	return pubkey, err == nil && prefix == "npub" && isText && isHex64(pubkey)
}

func notAPubkey(text string) string {
	if holdsSecret(text) {
		return pubkeyHint + "; what was given looks like a private key, which must never be sent here"
	}
	return pubkeyHint
}

// shown is a wrong value as far as it may be repeated.
func shown(text string) string {
	const longest = 100
	switch {
	case holdsSecret(text):
		return "(private key left out)"
	case len(text) > longest:
		return strings.ToValidUTF8(text[:longest], "") + "…"
	default:
		return text
	}
}

func holdsSecret(text string) bool {
	lower := strings.ToLower(text)
	return strings.Contains(lower, "nsec1") || strings.Contains(lower, "ncryptsec1")
}

// isHex64 reports whether the text is 64 lower-case hex digits.
func isHex64(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}
