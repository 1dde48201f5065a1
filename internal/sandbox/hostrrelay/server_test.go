package hostrrelay

import (
	"io"
	"log"
	"testing"

	"github.com/nbd-wtf/go-nostr"
)

// khatru hands a listener on that it sees half added: without a connection.
func TestListenerWithoutConnectionGetsNothing(t *testing.T) {
	t.Parallel()
	relay := new(Server).relay("ws://localhost", log.New(io.Discard, "", 0))
	for _, prevents := range relay.PreventBroadcast {
		if !prevents(nil, &nostr.Event{Kind: 30402}) {
			t.Error("an event is sent to nobody's connection")
		}
	}
}
