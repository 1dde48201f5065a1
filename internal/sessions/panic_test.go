package sessions_test

import (
	"bytes"
	"crypto/rand"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/relaylists"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/seeds"
	"hostr-daemon/internal/sessions"
	"hostr-daemon/internal/signer"
)

// logText is a log to look into.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// bomb goes off at its first use after it was set.
type bomb struct{ set atomic.Bool }

const bombText = "canary in a panic"

func (b *bomb) touch() {
	if b.set.CompareAndSwap(true, false) {
		panic(bombText)
	}
}

// wantPanic checks what is told of one: an error to ask again after, and a line that
// holds the place and not the text.
func wantPanic(t *testing.T, err error, log *logText, during string) {
	t.Helper()
	if problem := fault.From(err); problem == nil || problem.Code != fault.UnexpectedError || !problem.Retryable {
		t.Errorf("got %v, want an error that can be retried", err)
	}
	told := log.String()
	if !strings.Contains(told, `"during":"`+during+`"`) || !strings.Contains(told, "panic_test.go") {
		t.Errorf("the log has %s", told)
	}
	if strings.Contains(told+err.Error(), bombText) {
		t.Error("the text of the panic is told")
	}
}

func TestPanicWhileOpening(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	guest := b.market.Guests[0]
	first := b.daemon()
	if _, err := first.SignInWithKey(within(t), secrets.NewSecret(guest.NSec)); err != nil {
		t.Fatal(err)
	}
	first.Close()
	var log logText
	var planted bomb
	planted.set.Store(true)
	b.change = func(config *sessions.Config) {
		config.Logger = zerolog.New(&log)
		config.SeedMarks = func(string) seeds.Memory { planted.touch(); return nil }
	}
	registry := b.daemon()
	_, err := registry.Opened(within(t), guest.PublicKey)
	wantPanic(t, err, &log, "opening a session")
	session, err := registry.Opened(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Check(within(t), "Testing"); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

// explosiveSigner goes off when it is closed.
type explosiveSigner struct {
	signer.Signer
	bomb bomb
}

func (e *explosiveSigner) Close() { e.bomb.touch() }

func TestPanicWhileRestoring(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var log logText
	b.change = func(config *sessions.Config) { config.Logger = zerolog.New(&log) }
	registry := b.daemon()
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	b.signIn(registry, phone, bridgeSession)
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	holder := session.Account().Signer().(*signer.Holder)
	if err := session.AwaitHydration(within(t)); err != nil {
		t.Fatal(err)
	}
	phone.Behave(signerapp.Behaviour{Methods: []string{"sign_event"}, Refuse: "Not authorized"})
	event := nostr.Event{Kind: 1, CreatedAt: nostr.Now()}
	if refused := holder.SignEvent(within(t), &event); !fault.Is(session.Stale(refused), fault.AuthRequired) {
		t.Fatalf("the signer refuses with %v", refused)
	}
	phone.Behave(signerapp.Behaviour{})
	local, err := signer.NewLocal(guest.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	explosive := &explosiveSigner{Signer: local}
	explosive.bomb.set.Store(true)
	if err := holder.Set(explosive); err != nil {
		t.Fatal(err)
	}
	wantPanic(t, session.Restore(within(t)), &log, "restoring a signer")
	if err := session.Restore(within(t)); err != nil {
		t.Fatalf("restoring once more: %v", err)
	}
	if err := registry.Logout(within(t), guest.PublicKey); err != nil {
		t.Errorf("signing out after a panic: %v", err)
	}
}

func TestPanicWhileStartingUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var log logText
	var planted bomb
	b.change = func(config *sessions.Config) {
		config.Logger = zerolog.New(&log)
		config.RelayLists = relaylists.NewCache(func() time.Time { planted.touch(); return time.Now() })
	}
	registry := b.daemon()
	planted.set.Store(true)
	guest := b.market.Guests[0]
	if _, err := registry.SignInWithKey(within(t), secrets.NewSecret(guest.NSec)); err != nil {
		t.Fatal(err)
	}
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for planted.set.Load() { // a failed run may have ended before it was waited for
		_ = session.AwaitHydration(within(t))
	}
	if err := session.AwaitHydration(within(t)); err != nil {
		wantPanic(t, err, &log, "starting an account's work")
		err = session.AwaitHydration(within(t))
		if err != nil {
			t.Errorf("after the panic: %v", err)
		}
	}
	if !strings.Contains(log.String(), "session.panic") {
		t.Error("the bomb did not go off")
	}
}

// explosiveRandom goes off when something is drawn.
type explosiveRandom struct{ bomb bomb }

func (e *explosiveRandom) Read(drawn []byte) (int, error) {
	e.bomb.touch()
	return rand.Read(drawn)
}

func TestPanicWhileWaitingForASignIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var log logText
	var random explosiveRandom
	b.change = func(config *sessions.Config) {
		config.Logger, config.Random = zerolog.New(&log), io.Reader(&random)
	}
	registry := b.daemon()
	phone := b.phone(b.market.Guests[0])
	// Who names another account has to prove it, for which a challenge is drawn.
	phone.Behave(signerapp.Behaviour{Methods: []string{"get_public_key"}, Result: b.market.Hosts[0].PublicKey, Times: 1})
	pending, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	random.bomb.set.Store(true)
	pending.Listen(within(t))
	if err := phone.Scan(within(t), pending.URI()); err != nil {
		t.Fatal(err)
	}
	_, err = pending.Wait(within(t))
	wantPanic(t, err, &log, "waiting for a sign-in")
	if signedIn, err := pending.Wait(within(t)); err != nil || signedIn.Pubkey != phone.PublicKey() {
		t.Errorf("after the panic: %+v, %v", signedIn, err)
	}
}

func TestPanicInBackgroundWork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var log logText
	b.change = func(config *sessions.Config) { config.Logger = zerolog.New(&log) }
	registry := b.daemon()
	registry.GoBackground("testing", func() { panic(bombText) })
	registry.Close()
	if told := log.String(); !strings.Contains(told, `"during":"testing"`) || strings.Contains(told, bombText) {
		t.Errorf("the log has %s", told)
	}
}

// TestPanicWhileTellingOfASignerRequest has the one who is told of requests go off: the
// request itself is answered.
func TestPanicWhileTellingOfASignerRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var log logText
	var planted bomb
	b.change = func(config *sessions.Config) {
		config.Logger = zerolog.New(&log)
		config.Notify = func(string, any) { planted.touch() }
	}
	registry := b.daemon()
	guest := b.market.Guests[0]
	b.signIn(registry, b.phone(guest), bridgeSession)
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	planted.set.Store(true)
	defer session.Operation("token-1", "trace-1")()
	event := nostr.Event{Kind: 30402, CreatedAt: nostr.Now()}
	if err := session.Account().Signer().SignEvent(within(t), &event); err != nil {
		t.Error(err)
	}
	if planted.set.Load() {
		t.Error("the bomb did not go off")
	}
}
