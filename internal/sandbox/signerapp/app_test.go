package signerapp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip04"
	"github.com/nbd-wtf/go-nostr/nip44"
	"go.uber.org/goleak"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// Keys of nobody.
var (
	accountKey   = strings.Repeat("0", 63) + "1"
	transportKey = strings.Repeat("0", 63) + "2"
	clientKey    = strings.Repeat("0", 63) + "3"
)

// client asks a signer app in the plainest way.
type client struct {
	t      testing.TB
	ctx    context.Context
	conn   *websocket.Conn
	signer string
	number int
}

func newClient(t testing.TB, relay, signer string) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, relay, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	c := &client{t: t, ctx: ctx, conn: conn, signer: signer}
	c.write("REQ", "answers", nostr.Filter{Kinds: []int{24133}, Tags: nostr.TagMap{"p": {public(t, clientKey)}}})
	c.await("EOSE")
	return c
}

func public(t testing.TB, key string) string {
	t.Helper()
	pubkey, err := nostr.GetPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pubkey
}

func (c *client) write(elements ...any) {
	c.t.Helper()
	frame, err := json.Marshal(elements)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.conn.Write(c.ctx, websocket.MessageText, frame); err != nil {
		c.t.Fatal(err)
	}
}

// await reads until a frame with the label comes.
func (c *client) await(label string) []json.RawMessage {
	c.t.Helper()
	for {
		_, frame, err := c.conn.Read(c.ctx)
		if err != nil {
			c.t.Fatalf("waiting for %s: %v", label, err)
		}
		var elements []json.RawMessage
		if json.Unmarshal(frame, &elements) == nil && len(elements) > 1 && string(elements[0]) == `"`+label+`"` {
			return elements
		}
	}
}

func (c *client) conversation() [32]byte {
	c.t.Helper()
	key, err := nip44.GenerateConversationKey(c.signer, clientKey)
	if err != nil {
		c.t.Fatal(err)
	}
	return key
}

// ask sends a request and returns its id.
func (c *client) ask(method string, params ...string) string {
	c.t.Helper()
	c.number++
	id := fmt.Sprint("request", c.number)
	c.repeat(id, method, params...)
	return id
}

func (c *client) repeat(id, method string, params ...string) {
	c.t.Helper()
	content, err := json.Marshal(map[string]any{"id": id, "method": method, "params": append([]string{}, params...)})
	if err != nil {
		c.t.Fatal(err)
	}
	sealed, err := nip44.Encrypt(string(content), c.conversation())
	if err != nil {
		c.t.Fatal(err)
	}
	event := nostr.Event{Kind: 24133, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"p", c.signer}}, Content: sealed}
	if err := event.Sign(clientKey); err != nil {
		c.t.Fatal(err)
	}
	c.write("EVENT", event)
}

// answer is a response; a null is "".
type answer struct{ ID, Result, Error string }

// next returns the app's next answer and whether it came in NIP-04.
func (c *client) next() (got answer, old bool) {
	c.t.Helper()
	var event nostr.Event
	if err := json.Unmarshal(c.await("EVENT")[2], &event); err != nil {
		c.t.Fatal(err)
	}
	if event.PubKey != c.signer {
		c.t.Fatalf("an answer of %s", event.PubKey)
	}
	text, err := nip44.Decrypt(event.Content, c.conversation())
	if old = strings.Contains(event.Content, "?iv="); old {
		shared, sharedErr := nip04.ComputeSharedSecret(c.signer, clientKey)
		if sharedErr != nil {
			c.t.Fatal(sharedErr)
		}
		text, err = nip04.Decrypt(event.Content, shared)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		c.t.Fatalf("%q: %v", text, err)
	}
	return got, old
}

func (c *client) want(wanted ...answer) {
	c.t.Helper()
	for _, want := range wanted {
		if got, _ := c.next(); got != want {
			c.t.Errorf("answer %+v, want %+v", got, want)
		}
	}
}

// start returns an app that the client may ask.
func start(t *testing.T, options signerapp.Options) (*signerapp.App, *client, *sandbox.Market) {
	t.Helper()
	market, err := sandbox.Start(context.Background(), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = market.Close() })
	options.PrivateKey = accountKey
	app, err := signerapp.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	c := newClient(t, market.RelayURL, app.RemotePubkey())
	scan(t, app, c, market)
	return app, c, market
}

func scan(t *testing.T, app *signerapp.App, c *client, market *sandbox.Market) {
	t.Helper()
	const secret = "8PHy8_T19vf4-fr7_P3-_w=="
	uri := "nostrconnect://" + public(t, clientKey) + "?relay=" + url.QueryEscape(market.RelayURL) + "&secret=" + secret + "&perms=sign_event&name=x"
	if err := app.Scan(c.ctx, uri); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.next(); got.Result != secret || got.Error != "" {
		t.Errorf("the code is answered with %+v", got)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	app, c, _ := start(t, signerapp.Options{TransportKey: transportKey})
	c.want(answer{c.ask("get_public_key"), public(t, accountKey), ""})
	c.want(answer{c.ask("ping"), "pong", ""})
	c.want(answer{c.ask("dance"), "", "unknown method dance"})
	c.ask("sign_event", `{"kind":1,"content":"x","tags":[["t","y"]],"created_at":5}`)
	got, _ := c.next()
	var event nostr.Event
	if err := json.Unmarshal([]byte(got.Result), &event); err != nil {
		t.Fatal(err)
	}
	if genuine, err := event.CheckSignature(); err != nil || !genuine || event.PubKey != app.PublicKey() || event.CreatedAt != 5 {
		t.Errorf("signed %v: %v", event, err)
	}
	for _, template := range []string{`{"kind":1,"content":"x","tags":[],"created_at":5,"pubkey":"x"}`, `{"kind":1}`, `x`} {
		c.ask("sign_event", template)
		if got, _ := c.next(); got.Error == "" {
			t.Errorf("signed %s", template)
		}
	}
	for _, nip := range []string{"nip04", "nip44"} {
		c.ask(nip+"_encrypt", public(t, clientKey), "hello")
		sealed, _ := c.next()
		c.want(answer{c.ask(nip+"_decrypt", public(t, clientKey), sealed.Result), "hello", ""})
		c.ask(nip+"_decrypt", public(t, clientKey), strings.Repeat("\n", 132))
		if got, _ := c.next(); got.Error == "" {
			t.Errorf("decrypted line breaks to %q", got.Result)
		}
	}
	if counts := []int{app.Count("ping"), app.Count("sign_event"), app.Count("")}; !slices.Equal(counts, []int{1, 4, 13}) {
		t.Errorf("counted %v", counts)
	}
}

func TestBehaviours(t *testing.T) {
	t.Parallel()
	app, c, _ := start(t, signerapp.Options{})
	behave := func(b signerapp.Behaviour) string { app.Behave(b); return c.ask("ping") }
	pong := func(id string) answer { return answer{id, "pong", ""} }

	c.want(answer{behave(signerapp.Behaviour{Refuse: "no", Times: 1}), "", "no"})
	c.want(pong(c.ask("ping")))
	c.want(pong(behave(signerapp.Behaviour{Refuse: "no", Methods: []string{"sign_event"}})))
	c.want(answer{behave(signerapp.Behaviour{Result: "x"}), "x", ""})
	c.want(answer{behave(signerapp.Behaviour{Raw: `{"id":"$id","error":"raw"}`}), "", "raw"})
	id := behave(signerapp.Behaviour{Repeats: 1, Contradict: true})
	c.want(pong(id), pong(id), answer{id, "", "changed my mind"})
	id = behave(signerapp.Behaviour{ApprovalURL: "https://approve.example", DelayMillis: 1})
	c.want(answer{id, "auth_url", "https://approve.example"}, pong(id))
	behave(signerapp.Behaviour{NIP04: true})
	if _, old := c.next(); !old {
		t.Error("not in NIP-04")
	}
	asked := app.Count("ping")
	behave(signerapp.Behaviour{Silent: true, Times: 1})
	if err := app.WaitFor(c.ctx, func(all []signerapp.Request, _ int) bool { return len(all) > asked }); err != nil {
		t.Fatal(err)
	}
	c.want(pong(c.ask("ping")))

	app.Revoke()
	c.want(answer{c.ask("ping"), "", "Not authorized"})
}

func TestTampering(t *testing.T) {
	t.Parallel()
	app, c, _ := start(t, signerapp.Options{})
	const template = `{"kind":1,"content":"x","tags":[],"created_at":5}`
	seen := map[string]bool{}
	for _, tampering := range []signerapp.Tampering{
		"", signerapp.TamperContent, signerapp.TamperCreatedAt, signerapp.TamperTags, signerapp.TamperKind,
		signerapp.TamperAuthor, signerapp.TamperSignature, signerapp.TamperID,
	} {
		app.Behave(signerapp.Behaviour{Tamper: tampering})
		c.ask("sign_event", template)
		got, _ := c.next()
		var event nostr.Event
		if err := json.Unmarshal([]byte(got.Result), &event); err != nil {
			t.Fatalf("%s: %v", tampering, err)
		}
		genuine, err := event.CheckSignature()
		wantGenuine := tampering != signerapp.TamperSignature
		if genuine != wantGenuine && err == nil || event.CheckID() == (tampering == signerapp.TamperID) {
			t.Errorf("%s: %v, genuine %t", tampering, event, genuine)
		}
		seen[fmt.Sprint(event.ID, event.PubKey, event.Sig[:20])] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d different events", len(seen))
	}
}

func TestHeldRequests(t *testing.T) {
	t.Parallel()
	app, c, _ := start(t, signerapp.Options{})
	app.Behave(signerapp.Behaviour{Hold: true, ApprovalURL: "https://approve.example"})
	held := func(requests, count int) {
		t.Helper()
		if err := app.WaitFor(c.ctx, func(all []signerapp.Request, held int) bool { return len(all) == requests && held == count }); err != nil {
			t.Fatal(err)
		}
	}
	first := c.ask("ping")
	c.want(answer{first, "auth_url", "https://approve.example"})
	held(1, 1)
	c.repeat(first, "ping")
	held(2, 1)
	if requests := app.Requests(); !requests[1].Repeat || requests[0].Repeat || requests[0].EventID == requests[1].EventID || app.Count("ping") != 1 {
		t.Errorf("requests %+v", requests)
	}
	if count := app.Approve(); count != 1 {
		t.Errorf("approved %d", count)
	}
	c.want(answer{first, "pong", ""})
	app.Behave(signerapp.Behaviour{Hold: true})
	second := c.ask("ping")
	held(3, 1)
	app.Deny("not today")
	c.want(answer{second, "", "not today"})
	app.Behave(signerapp.Behaviour{IgnoreRepeats: true})
	c.repeat(second, "ping")
	held(4, 0)
	c.want(answer{c.ask("ping"), "pong", ""})
}

func TestOfflineAndBack(t *testing.T) {
	t.Parallel()
	app, c, market := start(t, signerapp.Options{})
	app.Offline()
	if counters, err := market.Relay.WaitFor(c.ctx, func(n sandbox.Counters) bool { return n.Open == 1 }); err != nil {
		t.Fatalf("%+v: %v", counters, err)
	}
	c.ask("ping")
	if err := app.Scan(c.ctx, "nostrconnect://"+public(t, clientKey)+"?relay="+market.RelayURL+"&secret=x"); err == nil {
		t.Error("scanned offline")
	}
	c.await("OK")
	if err := app.Online(c.ctx); err != nil {
		t.Fatal(err)
	}
	c.want(answer{c.ask("get_public_key"), public(t, accountKey), ""})
	if count := app.Count("ping"); count != 0 {
		t.Errorf("it heard %d requests while it was offline", count)
	}
}

func TestBunkerAddress(t *testing.T) {
	t.Parallel()
	app, c, market := start(t, signerapp.Options{TransportKey: transportKey})
	app.Revoke()
	text, err := app.Serve(c.ctx, market.RelayURL)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(text)
	if err != nil || address.Host != public(t, transportKey) || address.Query().Get("relay") != market.RelayURL {
		t.Fatalf("address %s, %v", text, err)
	}
	secret := address.Query().Get("secret")
	c.want(answer{c.ask("connect", app.RemotePubkey(), "guess"), "", "Not authorized"})
	c.want(answer{c.ask("connect", app.RemotePubkey(), secret), "ack", ""})
	c.want(answer{c.ask("ping"), "pong", ""})
	app.Revoke() // A secret is good once.
	c.want(answer{c.ask("connect", app.RemotePubkey(), secret), "", "Not authorized"})
}

func TestRelayRestart(t *testing.T) {
	t.Parallel()
	app, _, market := start(t, signerapp.Options{})
	market.Relay.Stop()
	if err := market.Relay.Resume(); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, market.RelayURL, app.RemotePubkey())
	scan(t, app, c, market) // It waits until the app listens again.
	c.want(answer{c.ask("ping"), "pong", ""})
}

func TestRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	if _, err := signerapp.New(signerapp.Options{PrivateKey: "x"}); err == nil {
		t.Error("a key that is none")
	}
	if _, err := signerapp.New(signerapp.Options{PrivateKey: accountKey, TransportKey: "x"}); err == nil {
		t.Error("a transport key that is none")
	}
	app, err := signerapp.New(signerapp.Options{PrivateKey: accountKey})
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	for _, uri := range []string{
		"", "bunker://x", "nostrconnect://x?relay=ws://h&secret=x", "nostrconnect://" + public(t, clientKey),
		"nostrconnect://" + public(t, clientKey) + "?secret=x", "nostrconnect://" + public(t, clientKey) + "?relay=ws://h",
		"nostrconnect://" + public(t, clientKey) + "?relay=%zz&secret=x",
	} {
		if err := app.Scan(context.Background(), uri); err == nil {
			t.Errorf("scanned %q", uri)
		}
	}
}

func TestBehaviourIsReadFromJSON(t *testing.T) {
	t.Parallel()
	want := signerapp.Behaviour{Methods: []string{"sign_event"}, Times: 2, Refuse: "no", Tamper: signerapp.TamperTags}
	text, err := json.Marshal(want)
	if err != nil || string(text) != `{"methods":["sign_event"],"times":2,"refuse":"no","tamper":"tags"}` {
		t.Errorf("written as %s, %v", text, err)
	}
	var got signerapp.Behaviour
	if err := json.Unmarshal(text, &got); err != nil || !cmp.Equal(got, want) {
		t.Errorf("read as %+v, %v", got, err)
	}
}
