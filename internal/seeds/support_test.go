package seeds

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(withRelay{m}, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// commonRelay is the sandbox's Hostr relay, in good health, for all tests: each has
// an account of its own there.
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
	market, err := sandbox.Start(patient(t), sandbox.Options{Hosts: 1, Guests: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := market.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return market
}

// hurriedClock runs forty times faster than the machine's, for relay clients that
// wait in vain: 12 s without an answer are soon over.
type hurriedClock struct {
	relay.SystemClock
	started time.Time
}

const hurry = 40

func (c hurriedClock) Now() time.Time { return c.started.Add(hurry * time.Since(c.started)) }

func (c hurriedClock) AfterFunc(d time.Duration, f func()) func() bool {
	return c.SystemClock.AfterFunc(d/hurry, f)
}

// heldClock stands still and does not wait, unless sleep does.
type heldClock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
	sleep func(ctx context.Context, d time.Duration) error
}

func newHeldClock() *heldClock { return &heldClock{now: time.Unix(1_780_000_000, 0)} }

func (c *heldClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *heldClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *heldClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.slept = append(c.slept, d)
	sleep := c.sleep
	c.mu.Unlock()
	if sleep != nil {
		return sleep(ctx, d)
	}
	return ctx.Err()
}

func (c *heldClock) waits() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.slept)
}

// testAccount signs with a key held here, and counts and may answer what it is asked,
// as a remote signer may.
type testAccount struct {
	*signer.Local
	remote bool

	mu    sync.Mutex
	asked []string
	// refuse may answer a request in place of the signer.
	refuse func(ctx context.Context, method string) error
}

func (a *testAccount) IsRemote() bool { return a.remote }

func (a *testAccount) meet(ctx context.Context, method string) error {
	a.mu.Lock()
	a.asked = append(a.asked, method)
	refuse := a.refuse
	a.mu.Unlock()
	if refuse == nil {
		return nil
	}
	return refuse(ctx, method)
}

func (a *testAccount) refuseWith(refuse func(ctx context.Context, method string) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = refuse
}

// requests returns what the signer was asked, without AUTH, and forgets it.
func (a *testAccount) requests() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := strings.Join(a.asked, " ")
	a.asked = nil
	return asked
}

func (a *testAccount) SignEvent(ctx context.Context, event *nostr.Event) error {
	if event.Kind != nostr.KindClientAuthentication {
		if err := a.meet(ctx, "sign_event"); err != nil {
			return err
		}
	}
	return a.Local.SignEvent(ctx, event)
}

func (a *testAccount) NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error) {
	if err := a.meet(ctx, "nip44_encrypt"); err != nil {
		return "", err
	}
	return a.Local.NIP44Encrypt(ctx, peer, plaintext)
}

func (a *testAccount) NIP44Decrypt(ctx context.Context, peer, payload string) (string, error) {
	if err := a.meet(ctx, "nip44_decrypt"); err != nil {
		return "", err
	}
	plaintext, err := a.Local.NIP44Decrypt(ctx, peer, payload)
	if err != nil && a.remote { // A remote signer only says that it failed.
		return "", &signer.Rejected{Method: "nip44_decrypt", Text: "failed"}
	}
	return plaintext, err
}

// secretStore is the secret store of one device.
type secretStore struct {
	mu    sync.Mutex
	seed  derivation.Seed
	sets  int
	fails error
}

func (s *secretStore) Seed(context.Context) (derivation.Seed, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seed, !s.seed.IsZero(), nil
}

func (s *secretStore) SetSeed(_ context.Context, seed derivation.Seed) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return s.fails
	}
	s.seed = seed
	s.sets++
	return nil
}

func (s *secretStore) holds() derivation.Seed {
	seed, _, _ := s.Seed(context.Background())
	return seed
}

// testMemory is a Memory.
type testMemory struct {
	mu   sync.Mutex
	mark string
	err  error
}

func (m *testMemory) Mark(context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mark, m.err
}

func (m *testMemory) SetMark(_ context.Context, mark string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mark = mark
	return m.err
}

// device is one device of an account, with everything that survives a restart.
type device struct {
	t       testing.TB
	market  *sandbox.Market
	account *testAccount
	derived derivation.Seed
	store   *secretStore
	memory  *testMemory
	clock   *heldClock
	log     *testLog
	// relayClock is the one of the device's relay clients.
	relayClock relay.Clock
}

// accounts are the private keys of the running tests.
var accounts sync.Map

// privateKey returns the key of the test's account, a new one in each run.
func privateKey(t testing.TB) derivation.PrivateKey {
	t.Helper()
	drawn, err := derivation.NewSeed(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	digits, known := accounts.LoadOrStore(t, drawn.Hex())
	if !known {
		t.Cleanup(func() { accounts.Delete(t) })
	}
	key, err := derivation.ParsePrivateKey(digits.(string))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newDevice returns a device of the account of the test; remote says how it signs.
func newDevice(t testing.TB, market *sandbox.Market, remote bool) *device {
	t.Helper()
	key := privateKey(t)
	local, err := signer.NewLocal(key.Hex())
	if err != nil {
		t.Fatal(err)
	}
	d := &device{
		t: t, market: market, account: &testAccount{Local: local, remote: remote},
		store: &secretStore{}, memory: &testMemory{}, clock: newHeldClock(), log: &testLog{},
		relayClock: relay.SystemClock{},
	}
	if !remote {
		if d.derived, err = derivation.SeedFromPrivateKey(key); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(d.checkLog)
	return d
}

// start starts the daemon on the device, as it were.
func (d *device) start() *Service {
	d.t.Helper()
	return d.startWith(d.newClient())
}

func (d *device) startWith(relays Relays) *Service {
	d.t.Helper()
	service, err := New(Config{
		Relays: relays, Account: d.account, Local: d.store, Memory: d.memory, Derived: d.derived,
		Clock: d.clock, Logger: zerolog.New(d.log),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(service.Close)
	return service
}

func (d *device) newClient() *relay.Client {
	d.t.Helper()
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	client, err := relay.NewClient(relay.Config{
		HostrRelay: d.market.RelayURL, Account: d.account, Verifier: verifier, Clock: d.relayClock,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		client.Close()
		verifier.Close()
	})
	return client
}

// backups returns the account's events of kind 17389 on the relay.
func (d *device) backups() []nostr.Event {
	d.t.Helper()
	events, err := d.market.Relay.Query(patient(d.t), nostr.Filter{Kinds: []int{kindAccountSeed}, Authors: []string{d.account.PublicKey()}})
	if err != nil {
		d.t.Fatal(err)
	}
	return events
}

// published counts the EVENTs of kind 17389 that the account's devices have sent.
func (d *device) published() int {
	count := 0
	for _, frame := range d.market.Relay.Frames() {
		if frame.Label == "EVENT" && strings.Contains(frame.Text, `"kind":17389`) && strings.Contains(frame.Text, d.account.PublicKey()) {
			count++
		}
	}
	return count
}

// checkLog looks for secrets in everything the device has logged.
func (d *device) checkLog() {
	for what, seed := range map[string]derivation.Seed{"stored": d.store.holds(), "derived": d.derived} {
		if !seed.IsZero() && strings.Contains(d.log.String(), seed.Hex()) {
			d.t.Errorf("the %s seed is in the log", what)
		}
	}
}

// mustSeed wants a seed, held in the store.
func (d *device) mustSeed(service *Service) derivation.Seed {
	d.t.Helper()
	seed, err := service.Seed(patient(d.t))
	if err != nil {
		d.t.Fatalf("no seed: %v", err)
	}
	if !seed.Equal(d.store.holds()) {
		d.t.Error("the seed in use is not the one in the secret store")
	}
	return seed
}

// retry asks until there is a seed, as people do: a connection may still be coming
// back.
func (d *device) retry(service *Service) derivation.Seed {
	d.t.Helper()
	d.waitFor("there is a seed", func() bool {
		_, err := service.Seed(patient(d.t))
		return err == nil
	})
	return d.mustSeed(service)
}

// mustFail wants a retryable error that holds the text, and nothing stored.
func (d *device) mustFail(service *Service, want string) error {
	d.t.Helper()
	seed, err := service.Seed(patient(d.t))
	if err == nil || !seed.IsZero() {
		d.t.Fatal("there is a seed")
	}
	coded := fault.From(err)
	if coded.Code != fault.UnexpectedError || !coded.Retryable || !strings.Contains(coded.Message, want) {
		d.t.Errorf("error %+v, want %q", coded, want)
	}
	if !d.store.holds().IsZero() {
		d.t.Error("a seed was stored")
	}
	return err
}

// compared waits until local and remote seed are compared.
func (d *device) waitFor(what string, come func() bool) {
	d.t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !come() {
		select {
		case <-ticker.C:
		case <-deadline:
			d.t.Fatalf("it never came about that %s; the log:\n%s", what, d.log)
		}
	}
}

func (d *device) waitForLog(event string) {
	d.t.Helper()
	d.waitFor("the log holds "+event, func() bool { return strings.Contains(d.log.String(), `"message":"`+event+`"`) })
}

// isCompared tells whether the service has nothing more to compare.
func (s *Service) isCompared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compared
}

// publishSeed puts a backup of the account on the relay, past everything.
func (d *device) publishSeed(plaintext string, at int64) nostr.Event {
	d.t.Helper()
	content, err := d.account.Local.NIP44Encrypt(patient(d.t), d.account.PublicKey(), plaintext)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.publishContent(content, at)
}

func (d *device) publishContent(content string, at int64) nostr.Event {
	d.t.Helper()
	event := nostr.Event{Kind: kindAccountSeed, CreatedAt: nostr.Timestamp(at), Tags: nostr.Tags{}, Content: content}
	if err := d.account.Local.SignEvent(patient(d.t), &event); err != nil {
		d.t.Fatal(err)
	}
	if d.market != nil {
		if err := d.market.Relay.Insert(patient(d.t), event); err != nil {
			d.t.Fatal(err)
		}
	}
	return event
}

type testLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// someSeed is a seed of nobody.
const someSeed = "00aa11bb22cc33dd44ee55ff66007711882299aa33bb44cc55dd66ee77ff8800"

func parsed(t testing.TB, digits string) derivation.Seed {
	t.Helper()
	seed, err := derivation.ParseSeed(digits)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

var errGone = errors.New("the caller is gone")

// receive waits for what should come at once. It may be called in any goroutine.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Error("nothing came")
		var none T
		return none
	}
}
