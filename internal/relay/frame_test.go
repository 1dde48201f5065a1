package relay

import (
	"context"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"
)

func TestParseFrame(t *testing.T) {
	t.Parallel()
	event := signed(t, aliceKey, 1, 5, "a \"quoted\"\n  text", nostr.Tag{"d", "x", "y"}, nostr.Tag{"e"})
	text, err := event.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	read, err := parseFrame([]byte(`["EVENT","q1",` + string(text) + `]`))
	if err != nil || read.label != "EVENT" || read.id != "q1" {
		t.Fatalf("read %+v, %v", read, err)
	}
	if _, ok := checkForm(read.event); !ok || read.event.String() != event.String() {
		t.Errorf("the event reads as %v", read.event)
	}
	for data, want := range map[string]frame{
		`["EOSE","q1"]`:                       {label: "EOSE", id: "q1"},
		` [ "EOSE" , "q1" , 5 ] `:             {label: "EOSE", id: "q1"},
		`["CLOSED","q1"]`:                     {label: "CLOSED", id: "q1"},
		`["CLOSED","q1","error: x"]`:          {label: "CLOSED", id: "q1", text: "error: x"},
		`["CLOSED","q1",{"a":[1]},"x"]`:       {label: "CLOSED", id: "q1"},
		`["OK","ab",true]`:                    {label: "OK", id: "ab", accepted: true},
		`["OK","ab",false,"blocked: \u00fc"]`: {label: "OK", id: "ab", text: "blocked: ü"},
		`["OK","ab","true","x"]`:              {label: "OK", id: "ab", text: "x"},
		`["OK"]`:                              {label: "OK"},
		`["NOTICE","n"]`:                      {label: "NOTICE", text: "n"},
		`["AUTH","c"]`:                        {label: "AUTH", text: "c"},
		`["AUTH",null]`:                       {label: "AUTH"},
		`["COUNT","q1",{"count":5}]`:          {label: "COUNT"},
		`[]`:                                  {},
		`[5,"x"]`:                             {},
	} {
		if got, err := parseFrame([]byte(data)); err != nil || got != want {
			t.Errorf("%s reads as %+v, %v", data, got, err)
		}
	}
	for _, data := range []string{
		``, `x`, `{}`, `null`, `"EOSE"`, `["EOSE","q1"`, `["EOSE","q1"] x`, `["EVENT"]`, `["EVENT","q1"]`, `["EVENT","x`,
		`["EVENT","q1",{"id":5}]`, `["EVENT","q1",{"created_at":5.0}]`, `["EVENT","q1",{"unknown":1}]`,
		`["EVENT","q1",{"tags":[["a",null]]}]`, `["EVENT","q1",[]]`, `["OK","ab",tru]`, `["EOSE","\x"]`,
	} {
		if got, err := parseFrame([]byte(data)); err == nil {
			t.Errorf("%s reads as %+v", data, got)
		}
	}
}

func TestFrameOutlivesItsBuffer(t *testing.T) {
	t.Parallel()
	data := []byte(`["EVENT","q1",{"id":"ab","pubkey":"cd","content":"text","sig":"ef","tags":[["t","x"]]}]`)
	read, err := parseFrame(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = '?'
	}
	e := read.event
	if got := strings.Join([]string{e.ID, e.PubKey, e.Content, e.Sig, e.Tags[0][0], e.Tags[0][1]}, " "); got != "ab cd text ef t x" {
		t.Errorf("the event changed with the buffer: %s", got)
	}
}

// FuzzFrame gives any bytes to a socket on which everything is open that a frame
// can be for. Nothing may panic, and what is delivered must be genuine.
func FuzzFrame(f *testing.F) {
	event := signed(f, aliceKey, 1, 5, "x", nostr.Tag{"d", "x"})
	text, err := event.MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		`["EVENT","q",` + string(text) + `]`, `["EVENT","s",` + string(text) + `]`, `["EVENT","x`, `["EVENT","1:",{"id":"ab"}]`,
		`["EVENT","q"]`, `["EOSE","q"]`, `["EOSE","s"]`, `["CLOSED","q","auth-required: x"]`, `["CLOSED","s","rate-limited: x"]`,
		`["CLOSED","s"]`, `["OK","` + event.ID + `",true]`, `["OK","` + event.ID + `",false,"auth-required"]`, `["AUTH","c"]`,
		`["NOTICE","n"]`, `[`, "\xff", `["EVENT","q",{"tags":[[]],"kind":1e3}]`,
	} {
		f.Add([]byte(seed))
	}
	client := newTestClient(f, Config{HostrRelay: "wss://h", Account: newAccount(f, aliceKey), Clock: newManualClock()})
	f.Fuzz(func(t *testing.T, data []byte) {
		harness := newFrameHarness(client, event.ID)
		harness.socket.receive(data)
		harness.close()
		for _, got := range harness.run.answer().Events {
			if valid, err := got.CheckSignature(); !valid || err != nil || !got.CheckID() {
				t.Errorf("delivered %v, which is not genuine", got)
			}
		}
	})
}

// frameHarness is a socket without a network: REQ "q" is a query, "s" is live, and a
// publish waits for the OK of one event.
type frameHarness struct {
	connection *connection
	socket     *socket
	run        *queryRun
	live       *Subscription
}

func newFrameHarness(client *Client, eventID string) *frameHarness {
	c := newConnection(client, client.hostrRelay)
	s := newSocket(c, nil)
	s.ready = true
	c.socket = s
	run := newQueryRun(client, "", nostr.Filter{Kinds: []int{1}}, []*connection{c})
	live := &Subscription{
		client: client, filled: make(chan struct{}, 1), restoredAgain: make(chan struct{}, 1),
		refusals: make(chan Refusal, maxRefusals), unstored: 1, seen: newSeen(),
	}
	part := &subscriptionPart{subscription: live, connection: c}
	part.wire = &wireSubscription{filter: nostr.Filter{Kinds: []int{1}}, receiver: part, live: true}
	part.wire.sequence = newSequence(client.verifier, part.deliver)
	c.register(run.parts[0].wire)
	c.register(part.wire)
	c.subscriptions = map[string]*wireSubscription{"q": run.parts[0].wire, "s": part.wire}
	run.parts[0].wire.id, part.wire.id = "q", "s"
	s.publishes[eventID] = []chan okAnswer{make(chan okAnswer, 1)}
	return &frameHarness{c, s, run, live}
}

// close ends the socket and waits for what the frame has started.
func (h *frameHarness) close() {
	h.socket.cancel(context.Canceled)
	h.connection.drop(h.socket)
	checked := make(chan struct{})
	h.run.parts[0].wire.sequence.after(func() { close(checked) })
	<-checked
}
