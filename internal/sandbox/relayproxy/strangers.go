package relayproxy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr"
)

// maxForeign is how many events Faults.Foreign sends for one REQ.
const maxForeign = 5

// strangers makes what a healthy relay would not send. Its key is thrown away
// with it.
type strangers struct {
	key     string
	note    nostr.Event // signed, of a kind nobody here asks for
	foreign []nostr.Event
}

// outgoing is one frame for a client.
type outgoing struct {
	kind websocket.MessageType
	text []byte
}

func newStrangers(foreign []nostr.Event) (*strangers, error) {
	s := &strangers{key: nostr.GeneratePrivateKey()}
	note, err := s.sign("Nobody here asked for this note.")
	if err != nil {
		return nil, err
	}
	s.note = note
	s.foreign = append([]nostr.Event{note}, foreign...)
	return s, nil
}

// before returns what the faults put in front of the answer to a REQ.
func (s *strangers) before(faults Faults, subscription string, frame []byte) []outgoing {
	var all []outgoing
	if faults.Notice != "" {
		all = append(all, text(frameOf("NOTICE", faults.Notice)))
	}
	if faults.Garbage {
		all = append(all, s.garbage(subscription)...)
	}
	if faults.OversizedBytes > 0 {
		if event, err := s.sign(strings.Repeat("x", faults.OversizedBytes)); err == nil {
			all = append(all, text(frameOf("EVENT", subscription, event)))
		}
	}
	if faults.Foreign {
		for _, event := range s.notAskedFor(frame) {
			all = append(all, text(frameOf("EVENT", subscription, event)))
		}
	}
	return all
}

// garbage returns frames that are broken each in another way; some of them end
// a client that reads carelessly (spec 82 §10.3, §10.5, §11.15).
func (s *strangers) garbage(subscription string) []outgoing {
	with := func(change func(*nostr.Event)) []byte {
		broken := s.note
		change(&broken)
		return frameOf("EVENT", subscription, broken)
	}
	texts := [][]byte{
		[]byte(`["EVENT",` + quoted(subscription)),
		[]byte(`["EVENT",` + quoted(subscription) + `,{"id":"ab"}]`),
		[]byte(`["EVENT",` + quoted(subscription) + `,{"id":"ab"`),
		[]byte(`["EVENT",` + quoted(subscription) + `,null]`),
		[]byte(`["EVENT",` + quoted(subscription) + `,{}]`),
		[]byte(`["EVENT",` + quoted(subscription) + `]`),
		frameOf("EVENT", s.note),
		frameOf("EVENT", "a-subscription-nobody-opened", s.note),
		with(func(event *nostr.Event) { event.PubKey = event.PubKey[:62] }),
		with(func(event *nostr.Event) { event.PubKey += "00" }),
		with(func(event *nostr.Event) { event.Sig = event.Sig[:126] }),
		with(func(event *nostr.Event) { event.Sig += "00" }),
		with(func(event *nostr.Event) { event.ID = strings.ToUpper(event.ID) }),
		[]byte(`["EOSE"]`), []byte(`["EOSE",17]`), []byte(`["EOSE","a-subscription-nobody-opened"]`),
		[]byte(`["CLOSED"]`), []byte(`["OK"]`), []byte(`["OK",true]`), []byte(`["AUTH"]`), []byte(`["AUTH",{}]`),
		[]byte(`["NOTICE"]`), []byte(`["HELLO","there"]`), []byte(`[]`), []byte(`{}`), []byte(`null`), []byte(`"`),
		[]byte(``), []byte("\x00"), []byte(`not JSON at all`),
		[]byte(strings.Repeat("[", 20000)),
	}
	all := make([]outgoing, 0, len(texts)+1)
	for _, each := range texts {
		all = append(all, text(each))
	}
	return append(all, outgoing{websocket.MessageBinary, []byte{0, 1, 2, 3}})
}

// forgeries returns copies of an event that must not pass for it: by content,
// by signature, by time and by author. The first two keep its id.
func (s *strangers) forgeries(event nostr.Event) []nostr.Event {
	content, signature, dated, authored := event, event, event, event
	content.Content += " (forged)"
	signature.Sig = flipped(event.Sig)
	dated.CreatedAt++
	dated.ID = dated.GetID()
	authored.PubKey = s.note.PubKey
	authored.ID = authored.GetID()
	return []nostr.Event{content, signature, dated, authored}
}

// notAskedFor returns genuine events that no filter of the REQ matches.
func (s *strangers) notAskedFor(frame []byte) []nostr.Event {
	var elements []json.RawMessage
	if json.Unmarshal(frame, &elements) != nil || len(elements) < 3 {
		return nil
	}
	var filters nostr.Filters
	for _, raw := range elements[2:] {
		var filter nostr.Filter
		if json.Unmarshal(raw, &filter) == nil {
			filters = append(filters, filter)
		}
	}
	var unwanted []nostr.Event
	for i := range s.foreign {
		if len(unwanted) < maxForeign && !filters.Match(&s.foreign[i]) {
			unwanted = append(unwanted, s.foreign[i])
		}
	}
	return unwanted
}

func (s *strangers) sign(content string) (nostr.Event, error) {
	event := nostr.Event{Kind: nostr.KindTextNote, CreatedAt: nostr.Now(), Tags: nostr.Tags{}, Content: content}
	if err := event.Sign(s.key); err != nil {
		return event, fmt.Errorf("cannot sign a stranger's note: %w", err)
	}
	return event, nil
}

func text(frame []byte) outgoing { return outgoing{websocket.MessageText, frame} }

func quoted(value string) string {
	encoded, _ := json.Marshal(value)
	return string(encoded)
}

// flipped changes the last hex digit.
func flipped(hex string) string {
	if hex == "" {
		return "0"
	}
	last := "0"
	if hex[len(hex)-1] == '0' {
		last = "1"
	}
	return hex[:len(hex)-1] + last
}
