package relay

import (
	"errors"

	"github.com/mailru/easyjson/jlexer"
	"github.com/nbd-wtf/go-nostr"
)

// frame is one message of a relay (NIP-01, NIP-42).
type frame struct {
	// label shares memory with the data it was read from.
	label string
	// id is the subscription id of EVENT, EOSE and CLOSED, which shares memory with
	// the data it was read from, or the event id of OK, which does not.
	id string
	// event is set for EVENT; its fields are as claimed by the relay.
	event *nostr.Event
	// accepted is the verdict of OK.
	accepted bool
	// text is the reason of OK and CLOSED, the words of NOTICE, the challenge of AUTH.
	text string
}

var errFrameWithoutEvent = errors.New("an EVENT of fewer than three elements")

// parseFrame reads one message in a single pass. go-nostr's own parser passes
// twice, refuses an OK of three elements and a CLOSED of two, and upstream takes
// both (spec 82 §10.2). Elements of a wrong type read as their zero value and
// elements after the known ones are ignored.
func parseFrame(data []byte) (frame, error) {
	in := &jlexer.Lexer{Data: data}
	in.Delim('[')
	read := frame{label: unsafeText(in)}
	switch read.label {
	case "EVENT":
		read.id = unsafeText(in)
		if in.Ok() && in.IsDelim(']') {
			return read, errFrameWithoutEvent
		}
		read.event = new(nostr.Event)
		read.event.UnmarshalEasyJSON(in)
		in.WantComma()
	case "EOSE":
		read.id = unsafeText(in)
	case "CLOSED":
		read.id, read.text = unsafeText(in), text(in)
	case "OK":
		read.id, read.accepted, read.text = text(in), boolean(in), text(in)
	case "NOTICE", "AUTH":
		read.text = text(in)
	}
	for in.Ok() && !in.IsDelim(']') {
		in.SkipRecursive()
		in.WantComma()
	}
	in.Delim(']')
	in.Consumed()
	return read, in.Error()
}

// element moves to the next element of the array and reports whether there is one
// of the wanted kind; another kind is skipped.
func element(in *jlexer.Lexer, kind jlexer.TokenKind) bool {
	if !in.Ok() || in.IsDelim(']') {
		return false
	}
	if in.CurrentToken() == kind {
		return true
	}
	in.SkipRecursive()
	in.WantComma()
	return false
}

// unsafeText reads a string that lives only as long as the lexer's data.
func unsafeText(in *jlexer.Lexer) string {
	if !element(in, jlexer.TokenString) {
		return ""
	}
	value := in.UnsafeString()
	in.WantComma()
	return value
}

func text(in *jlexer.Lexer) string {
	if !element(in, jlexer.TokenString) {
		return ""
	}
	value := in.String()
	in.WantComma()
	return value
}

func boolean(in *jlexer.Lexer) bool {
	if !element(in, jlexer.TokenBool) {
		return false
	}
	value := in.Bool()
	in.WantComma()
	return value
}
