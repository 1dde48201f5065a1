package relay

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr"
)

// BenchmarkQuery500 asks a relay on loopback for 500 listings of about 3 KB. The
// relay has its frames ready, so that nearly all of the time is the client's and
// the socket's. "raw" only reads the frames and looks at none: the floor.
func BenchmarkQuery500(b *testing.B) {
	relay := startReadyRelay(b, listings(b, 500))
	filter := nostr.Filter{Kinds: []int{30402}, Limit: 500}
	query := func(b *testing.B, client *Client) {
		answer, err := client.Query(context.Background(), filter, QueryOptions{Timeout: time.Minute})
		if err != nil || len(answer.Events) != 500 || !answer.Complete {
			b.Fatalf("%d events, %v", len(answer.Events), err)
		}
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			verifier := NewVerifier(nil, quiet())
			client := newTestClient(b, Config{HostrRelay: relay, Verifier: verifier})
			if err := client.Connect(context.Background(), relay); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			query(b, client)
			b.StopTimer()
			client.Close()
			verifier.Close()
			b.StartTimer()
		}
	})
	b.Run("warm", func(b *testing.B) {
		client := newTestClient(b, Config{HostrRelay: relay})
		query(b, client)
		for b.Loop() {
			query(b, client)
		}
	})
	b.Run("raw", func(b *testing.B) {
		conn, _, err := websocket.Dial(context.Background(), relay, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = conn.CloseNow() }()
		conn.SetReadLimit(maxFrame)
		for b.Loop() {
			readRaw(b, conn)
		}
	})
}

func readRaw(b *testing.B, conn *websocket.Conn) {
	if err := conn.Write(context.Background(), websocket.MessageText, []byte(`["REQ","q1",{"kinds":[30402]}]`)); err != nil {
		b.Fatal(err)
	}
	for {
		_, data, err := conn.Read(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if strings.HasPrefix(string(data[:7]), `["EOSE"`) {
			return
		}
	}
}

// startReadyRelay serves the same events to every REQ, from encoded frames.
func startReadyRelay(b *testing.B, events []nostr.Event) string {
	bodies := make([]string, len(events))
	for i, event := range events {
		bodies[i] = event.String()
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		parser := nostr.NewMessageParser()
		for {
			_, data, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			request, err := parser.ParseMessage(string(data))
			req, ok := request.(*nostr.ReqEnvelope)
			if err != nil || !ok {
				continue
			}
			for _, body := range bodies {
				_ = conn.Write(context.Background(), websocket.MessageText, []byte(`["EVENT","`+req.SubscriptionID+`",`+body+`]`))
			}
			_ = conn.Write(context.Background(), websocket.MessageText, []byte(`["EOSE","`+req.SubscriptionID+`"]`))
		}
	}))
	b.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}
