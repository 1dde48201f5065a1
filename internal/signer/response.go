package signer

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/nbd-wtf/go-nostr"
)

// response is a signer's answer as it stands in the decrypted content (NIP-46).
type response struct {
	ID     string          `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// authURL is the result that asks for patience: a person has to approve on a page.
const authURL = "auth_url"

func parseResponse(text string) (response, error) {
	var parsed response
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		return response{}, errors.New("the answer is no JSON object with an id")
	}
	return parsed, nil
}

// text returns the result if it is a text.
func (r response) text() (string, bool) {
	var text *string
	if len(r.Result) == 0 || json.Unmarshal(r.Result, &text) != nil || text == nil {
		return "", false
	}
	return *text, true
}

// waits reports whether the real answer is still to come.
func (r response) waits() bool {
	text, ok := r.text()
	return ok && text == authURL
}

// outcome applies the rules of spec 20 §4.3: an error that is not null fails the
// request, except an empty one beside a text; a result that is no text is an error.
func (r response) outcome(method string) (string, error) {
	result, isText := r.text()
	refusal, refused := r.refusal()
	switch {
	case refused && (refusal != "" || !isText):
		if refusal == "" {
			refusal = "no reason given"
		}
		return "", &Rejected{Method: method, Text: refusal}
	case !isText:
		return "", &WrongAnswer{Method: method, Problem: "its result is no text"}
	default:
		return result, nil
	}
}

// refusal returns the error as a text; false for null or none.
func (r response) refusal() (string, bool) {
	raw := bytes.TrimSpace(r.Error)
	if len(raw) == 0 || string(raw) == "null" {
		return "", false
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return foreignText(text), true
}

// unsignedEvent is the parameter of sign_event: no pubkey, no id.
type unsignedEvent struct {
	Kind      int             `json:"kind"`
	Content   string          `json:"content"`
	Tags      nostr.Tags      `json:"tags"`
	CreatedAt nostr.Timestamp `json:"created_at"`
}

func newUnsignedEvent(event *nostr.Event) unsignedEvent {
	tags := make(nostr.Tags, len(event.Tags)) // Never null, neither is a tag.
	for i, tag := range event.Tags {
		tags[i] = append(nostr.Tag{}, tag...)
	}
	return unsignedEvent{Kind: event.Kind, Content: event.Content, Tags: tags, CreatedAt: event.CreatedAt}
}

// signedEvent is the result of sign_event. Unknown keys are nothing to us, other
// than to the decoder of nostr.Event (spec 82 §10.4).
type signedEvent struct {
	unsignedEvent
	ID     string `json:"id"`
	PubKey string `json:"pubkey"`
	Sig    string `json:"sig"`
}

// acceptSigned checks that the answer is the event that was asked for, signed by
// the account, and returns it (spec 20 §4.3).
func acceptSigned(result string, asked *nostr.Event, account string) (nostr.Event, error) {
	wrong := func(problem string) (nostr.Event, error) {
		return nostr.Event{}, &WrongAnswer{Method: methodSignEvent, Problem: problem}
	}
	var got signedEvent
	if json.Unmarshal([]byte(result), &got) != nil {
		return wrong("it is no signed event")
	}
	want := newUnsignedEvent(asked)
	for _, compared := range []struct {
		same bool
		name string
	}{
		{got.PubKey == account, "author"},
		{got.Kind == want.Kind, "kind"},
		{got.CreatedAt == want.CreatedAt, "created_at"},
		{slices.EqualFunc(got.Tags, want.Tags, slices.Equal[nostr.Tag]), "tags"},
		{got.Content == want.Content, "content"},
	} {
		if !compared.same {
			return wrong("the signer changed the event's " + compared.name)
		}
	}
	signed := nostr.Event{
		ID: got.ID, PubKey: account, CreatedAt: want.CreatedAt, Kind: want.Kind, Tags: want.Tags, Content: want.Content, Sig: got.Sig,
	}
	if err := verify(&signed); err != nil {
		return wrong(err.Error())
	}
	return signed, nil
}
