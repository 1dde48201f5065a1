package inbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
	"hostr-daemon/internal/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(withRelay{m}, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// commonRelay is the sandbox's Hostr relay, in good health, for all tests: each has
// accounts of its own there.
var commonRelay *sandbox.Market

// withRelay runs the tests while there is a commonRelay.
type withRelay struct{ *testing.M }

func (w withRelay) Run() int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	if commonRelay, err = sandbox.Start(ctx, sandbox.Options{Hosts: 1, Guests: 1}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := w.M.Run()
	if err := commonRelay.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// patience is how long a test waits for what should come at once.
const patience = 30 * time.Second

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// startRelay runs a relay of the test's own, to be broken.
func startRelay(t testing.TB) *sandbox.Market {
	t.Helper()
	started, err := sandbox.Start(patient(t), sandbox.Options{Hosts: 1, Guests: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return started
}

// hurriedClock runs forty times faster than the machine's, for relay clients that
// wait in vain.
type hurriedClock struct {
	relay.SystemClock
	started time.Time
}

const hurry = 40

func (c hurriedClock) Now() time.Time { return c.started.Add(hurry * time.Since(c.started)) }

func (c hurriedClock) AfterFunc(d time.Duration, f func()) func() bool {
	return c.SystemClock.AfterFunc(d/hurry, f)
}

// testAccount counts what the signer is asked, and may answer in its place.
type testAccount struct {
	Account
	remote bool

	mu    sync.Mutex
	asked map[string]int
	// refuse may answer a request in place of the signer.
	refuse func(ctx context.Context, method, payload string) error
}

func (a *testAccount) IsRemote() bool { return a.remote }

func (a *testAccount) meet(ctx context.Context, method, payload string) error {
	a.mu.Lock()
	a.asked[method]++
	refuse := a.refuse
	a.mu.Unlock()
	if refuse == nil {
		return nil
	}
	return refuse(ctx, method, payload)
}

func (a *testAccount) refuseWith(refuse func(ctx context.Context, method, payload string) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = refuse
}

// count returns how often the method was asked for, and forgets it.
func (a *testAccount) count(method string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	count := a.asked[method]
	a.asked[method] = 0
	return count
}

func (a *testAccount) SignEvent(ctx context.Context, event *nostr.Event) error {
	method := "sign_event"
	if event.Kind == nostr.KindClientAuthentication {
		method = "auth"
	}
	if err := a.meet(ctx, method, ""); err != nil {
		return err
	}
	return a.Account.SignEvent(ctx, event)
}

func (a *testAccount) NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error) {
	if err := a.meet(ctx, "nip44_encrypt", ""); err != nil {
		return "", err
	}
	return a.Account.NIP44Encrypt(ctx, peer, plaintext)
}

func (a *testAccount) NIP44Decrypt(ctx context.Context, peer, payload string) (string, error) {
	if err := a.meet(ctx, "nip44_decrypt", payload); err != nil {
		return "", err
	}
	return a.Account.NIP44Decrypt(ctx, peer, payload)
}

// keyPlace is where the key of the message cache rests.
type keyPlace struct {
	mu   sync.Mutex
	key  *[32]byte
	made int
	err  error
}

func (p *keyPlace) MessageCacheKey(context.Context) ([32]byte, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return [32]byte{}, false, p.err
	}
	made := p.key == nil
	if made {
		p.made++
		p.key = new([32]byte)
		_, _ = rand.Read(p.key[:]) // It never fails.
	}
	return *p.key, made, nil
}

func (p *keyPlace) DeleteMessageCacheKey(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key = nil
	return p.err
}

// person is an account with everything of it that survives a restart.
type person struct {
	t        testing.TB
	market   *sandbox.Market
	app      *testAccount
	key      string
	local    *signer.Local
	public   string
	database string
	store    *store.Store
	keys     *keyPlace
	journal  *journal
	now      func() time.Time
	// relayClock is the one of the person's relay clients.
	relayClock relay.Clock
	// verified remembers which events were verified; nil for nothing.
	verified relay.Memory
}

func randomKey(t testing.TB) string {
	t.Helper()
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(raw)
}

func newLocal(t testing.TB, key string) *signer.Local {
	t.Helper()
	local, err := signer.NewLocal(key)
	if err != nil {
		t.Fatal(err)
	}
	return local
}

func newPerson(t testing.TB, at *sandbox.Market) *person {
	t.Helper()
	key := randomKey(t)
	local := newLocal(t, key)
	p := &person{
		t: t, market: at, key: key, local: local, public: local.PublicKey(),
		app:      &testAccount{Account: local, asked: map[string]int{}},
		database: filepath.Join(t.TempDir(), "test.sqlite3"),
		keys:     &keyPlace{}, journal: &journal{}, now: time.Now, relayClock: relay.SystemClock{},
	}
	var err error
	if p.store, err = store.Open(patient(t), p.database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.store.Close() })
	return p
}

// process is one run of the daemon for a person.
type process struct {
	*Service
	*person
	client *relay.Client
	seen   *rumors
	stop   func()
}

// rumors are what an observer was told of.
type rumors struct {
	mu  sync.Mutex
	all []market.Rumor
}

func (r *rumors) add(rumor market.Rumor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, rumor)
}

// texts returns the contents in order of arrival.
func (r *rumors) texts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var texts []string
	for _, rumor := range r.all {
		texts = append(texts, rumor.Event.Content)
	}
	return texts
}

func (r *rumors) count() int { return len(r.texts()) }

func (p *person) newClient() (*relay.Client, func()) {
	p.t.Helper()
	verifier := relay.NewVerifier(p.verified, zerolog.Nop())
	client, err := relay.NewClient(relay.Config{
		HostrRelay: p.market.RelayURL, Account: p.app, Verifier: verifier, Clock: p.relayClock,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return client, func() {
		client.Close()
		verifier.Close()
	}
}

func (p *person) config(relays Relays) Config {
	return Config{
		Relays: relays, Account: p.app, Memory: p.store.MessageCache(p.public), Keys: p.keys, Now: p.now,
		Logger: zerolog.New(p.journal).Level(zerolog.DebugLevel),
	}
}

// newProcess makes a process that is not started yet.
func (p *person) newProcess() *process {
	p.t.Helper()
	client, closeClient := p.newClient()
	run := &process{Service: New(p.config(client)), person: p, client: client, seen: &rumors{}}
	run.OnRumor(run.seen.add)
	var once sync.Once
	run.stop = func() {
		once.Do(func() {
			run.Service.Close()
			closeClient()
		})
	}
	p.t.Cleanup(run.stop)
	return run
}

// start starts a process and waits until its history is there.
func (p *person) start() *process {
	p.t.Helper()
	run := p.newProcess()
	run.awaitLive()
	return run
}

func (r *process) awaitLive() {
	r.t.Helper()
	if err := r.Await(patient(r.t), patience); err != nil {
		r.t.Fatal(err)
	}
	if !r.Live() {
		r.t.Fatalf("the history never came; the log:\n%s", r.journal)
	}
}

// awaitTexts waits until the texts have come, in any order, and nothing else.
func (r *process) awaitTexts(want ...string) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("the messages are %q", want), func() bool { return r.seen.count() >= len(want) })
	got := slices.Sorted(slices.Values(r.seen.texts()))
	if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		r.t.Errorf("messages %q, want %q", got, want)
	}
}

func (r *process) send(text, conversation string, recipients ...string) Sent {
	r.t.Helper()
	result, err := r.Send(patient(r.t), textDraft(text, conversation, recipients...))
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

func textDraft(text, conversation string, recipients ...string) market.MessageDraft {
	return market.MessageDraft{Kind: market.KindTextMessage, Content: text, Conversation: conversation, Recipients: recipients}
}

// stored returns the gift wraps for the person on the relay.
func (p *person) stored() []nostr.Event {
	p.t.Helper()
	wraps, err := p.market.Relay.Query(patient(p.t), nostr.Filter{Kinds: []int{market.KindGiftWrap}, Tags: nostr.TagMap{"p": {p.public}}})
	if err != nil {
		p.t.Fatal(err)
	}
	return wraps
}

// write has a stranger write to the person, past everything.
func (p *person) write(from *signer.Local, texts ...string) {
	p.t.Helper()
	p.insert(p.made(from, texts...)...)
}

// made returns the wraps for what a stranger writes.
func (p *person) made(from *signer.Local, texts ...string) []nostr.Event {
	p.t.Helper()
	var wraps []nostr.Event
	for i, text := range texts {
		at := nostr.Timestamp(p.now().Unix() - int64(len(texts)-i))
		rumor := textDraft(text, "", p.public).Event(from.PublicKey(), at)
		wrap, err := giftwrap.Wrap(patient(p.t), from, rumor, p.public, at, rand.Reader)
		if err != nil {
			p.t.Fatal(err)
		}
		wraps = append(wraps, *wrap)
	}
	return wraps
}

func (p *person) insert(wraps ...nostr.Event) {
	p.t.Helper()
	if err := p.market.Relay.Insert(patient(p.t), wraps...); err != nil {
		p.t.Fatal(err)
	}
}

// publish puts wraps on the relay as a client does, so that subscribers get them.
func (p *person) deliver(wraps ...nostr.Event) {
	p.t.Helper()
	other := newPerson(p.t, p.market)
	client, stop := other.newClient()
	defer stop()
	for _, wrap := range wraps {
		if _, err := client.Publish(patient(p.t), wrap, relay.PublishOptions{Relays: []string{p.market.RelayURL}}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// wrapText seals and wraps any text as a message, whatever it is.
func wrapText(t testing.TB, from *signer.Local, to, rumor string) nostr.Event {
	t.Helper()
	content, err := from.NIP44Encrypt(patient(t), to, rumor)
	if err != nil {
		t.Fatal(err)
	}
	seal := nostr.Event{Kind: market.KindSeal, CreatedAt: nostr.Now(), Tags: nostr.Tags{}, Content: content}
	if err := from.SignEvent(patient(t), &seal); err != nil {
		t.Fatal(err)
	}
	return wrapSeal(t, to, market.EncodeEmbeddedEvent(&seal))
}

func wrapSeal(t testing.TB, to, seal string) nostr.Event {
	t.Helper()
	oneTime := newLocal(t, randomKey(t))
	content, err := oneTime.NIP44Encrypt(patient(t), to, seal)
	if err != nil {
		t.Fatal(err)
	}
	return signedWrap(t, oneTime, to, content, nostr.Now())
}

func wrapContent(t testing.TB, to, content string, at nostr.Timestamp) nostr.Event {
	t.Helper()
	return signedWrap(t, newLocal(t, randomKey(t)), to, content, at)
}

func signedWrap(t testing.TB, oneTime *signer.Local, to, content string, at nostr.Timestamp) nostr.Event {
	t.Helper()
	wrap := nostr.Event{Kind: market.KindGiftWrap, CreatedAt: at, Tags: nostr.Tags{{"p", to}}, Content: content}
	if err := oneTime.SignEvent(patient(t), &wrap); err != nil {
		t.Fatal(err)
	}
	return wrap
}

// frames returns the REQs and AUTHs that the relay got, in order, of connections that
// asked for this person's wraps.
func (p *person) frames() []string {
	var frames []string
	ours := map[int]bool{}
	all := p.market.Relay.Frames()
	for _, frame := range all {
		if frame.Label == "REQ" && strings.Contains(frame.Text, p.public) {
			ours[frame.Connection] = true
		}
	}
	for _, frame := range all {
		if ours[frame.Connection] && (frame.Label == "REQ" || frame.Label == "AUTH") {
			frames = append(frames, frame.Label)
		}
	}
	return frames
}

// lastREQ returns the person's last REQ.
func (p *person) lastREQ() string {
	last := ""
	for _, frame := range p.market.Relay.Frames() {
		if frame.Label == "REQ" && strings.Contains(frame.Text, p.public) {
			last = frame.Text
		}
	}
	return last
}

// journal collects log lines.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// eventually looks every millisecond whether something has come true.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("it never came about that %s", what)
		}
	}
}

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
