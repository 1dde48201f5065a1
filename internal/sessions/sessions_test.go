package sessions_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/sessions"
)

const bridgeSession = "Zm9vYmFyLWJyaWRnZS1zZXNzaW9uLWlkLTEyMzQ1Njc"

func TestSignInByNostrConnect(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	signedIn := b.signIn(registry, phone, bridgeSession)
	if signedIn.Pubkey != guest.PublicKey || signedIn.Credential != secrets.BunkerCredential {
		t.Fatalf("signed in as %+v", signedIn)
	}
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	account, err := session.Check(within(t), "Testing")
	if err != nil {
		t.Fatal(err)
	}
	event := nostr.Event{Kind: 1327, CreatedAt: nostr.Now(), Content: "hello"}
	if err := account.Signer().SignEvent(within(t), &event); err != nil {
		t.Fatal(err)
	}
	if ok, err := event.CheckSignature(); !ok || err != nil || event.PubKey != guest.PublicKey {
		t.Errorf("the event is signed by %s: %v %v", event.PubKey, ok, err)
	}
	if other, err := registry.Session(within(t), bridgeSession); err != nil || other.Account() != nil {
		t.Errorf("the bridge's own session is signed in: %v %v", other.Account(), err)
	}
}

func TestRestoreAfterRestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	first := b.daemon()
	b.signIn(first, phone, bridgeSession)
	first.Close()
	asked := phone.Count("")
	session, err := b.daemon().Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	status, err := session.Status(within(t))
	if err != nil || status.ActivePubkey != guest.PublicKey || !status.SignerOnline {
		t.Errorf("after a restart: %+v %v", status, err)
	}
	if more := phone.Count("get_public_key"); more != 2 || phone.Count("") > asked+2 {
		t.Errorf("restoring asked the signer %d times, %d of them for its key", phone.Count("")-asked, more-1)
	}
}

func TestSignerOfflineAndBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	first := b.daemon()
	b.signIn(first, phone, bridgeSession)
	first.Close()
	phone.Offline()
	session, err := b.daemon().Opened(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	_, err = session.Check(within(t), "Testing")
	problem := fault.From(err)
	if problem == nil || problem.Code != fault.AuthRequired || problem.Details.(*sessions.Reconnect).SessionAction != "hostr_session_connect" {
		t.Fatalf("with the signer offline: %v", err)
	}
	if err := phone.Online(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Check(within(t), "Testing"); err != nil {
		t.Errorf("with the signer back: %v", err)
	}
}

func TestApprovalThatNobodyWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	pending, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pending.Wait(short); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled wait gave %v", err)
	}
	pending.Listen(within(t))
	if err := phone.Scan(within(t), pending.URI()); err != nil {
		t.Fatal(err)
	}
	again, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	if again.URI() != pending.URI() {
		t.Error("the second call shows another code")
	}
	signedIn, err := again.Wait(within(t))
	if err != nil || signedIn.Pubkey != guest.PublicKey {
		t.Fatalf("the second wait gave %+v, %v", signedIn, err)
	}
	fresh, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.URI() == pending.URI() {
		t.Error("a used code is shown again")
	}
}

func TestRegenerateEndsTheOldCode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	old, err := registry.StartLogin("login-1", true)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := old.Wait(within(t))
		waited <- err
	}()
	old.Listen(within(t))
	fresh, err := registry.StartLogin("login-1", true)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.URI() == old.URI() {
		t.Error("regenerate shows the same code")
	}
	if err := <-waited; !errors.Is(err, sessions.ErrReplaced) {
		t.Errorf("whoever waited for the old code got %v", err)
	}
}

func TestThreeAccountsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	people := []int{0, 1, 2}
	done := make(chan error, len(people))
	for _, i := range people {
		host := b.market.Hosts[i]
		phone := b.phone(host)
		go func() {
			pending, err := registry.StartLogin("login-"+host.PublicKey, false)
			if err == nil {
				pending.Listen(within(b.t))
				err = phone.Scan(within(t), pending.URI())
			}
			if err != nil {
				done <- err
				return
			}
			signedIn, err := pending.Wait(within(t))
			if err == nil && signedIn.Pubkey != host.PublicKey {
				err = errors.New("signed in as somebody else")
			}
			done <- err
		}()
	}
	for range people {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range people {
		host := b.market.Hosts[i]
		session, err := registry.Session(within(t), host.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		account, err := session.Check(within(t), "Testing")
		if err != nil {
			t.Fatal(err)
		}
		event := nostr.Event{Kind: 1, CreatedAt: nostr.Now()}
		if err := account.Signer().SignEvent(within(t), &event); err != nil || event.PubKey != host.PublicKey {
			t.Errorf("signed by %s: %v", event.PubKey, err)
		}
	}
}

func TestSignInWithKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	nsec, err := nip19.EncodePrivateKey(guest.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	signedIn, err := registry.SignInWithKey(within(t), secrets.NewSecret(nsec))
	if err != nil || signedIn.Pubkey != guest.PublicKey || signedIn.Credential != secrets.PrivateKeyCredential {
		t.Fatalf("signed in as %+v, %v", signedIn, err)
	}
	registry.Close()
	session, err := b.daemon().Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Check(within(t), "Testing"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	b.signIn(registry, b.phone(guest), bridgeSession)
	database, err := sql.Open("sqlite3", filepath.Join(b.state, "test.sqlite3"))
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	if _, err := database.Exec(`INSERT INTO operations (pubkey, namespace, id, is_terminal, data) VALUES (?, 'swap_in', 's1', 0, '{"id":"s1","isTerminal":false,"preimageHex":"aa"}')`, guest.PublicKey); err != nil {
		t.Fatal(err)
	}
	err = registry.Logout(within(t), guest.PublicKey)
	if problem := fault.From(err); problem == nil || problem.Code != fault.PendingSwaps || !problem.Retryable {
		t.Fatalf("with a swap under way: %v", err)
	}
	if _, err := database.Exec(`DELETE FROM operations`); err != nil {
		t.Fatal(err)
	}
	if err := registry.Logout(within(t), guest.PublicKey); err != nil {
		t.Fatal(err)
	}
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Check(within(t), "Testing"); !fault.Is(err, fault.AuthRequired) {
		t.Errorf("after signing out: %v", err)
	}
	if err := registry.Logout(within(t), guest.PublicKey); err != nil {
		t.Errorf("signing out twice: %v", err)
	}
	registry.Close()
	again, err := b.daemon().Session(within(t), guest.PublicKey)
	if err != nil || again.Account() != nil {
		t.Errorf("after a restart %v is signed in, %v", again.Account(), err)
	}
}

func TestSignerThatWithdrewItsPermission(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	b.signIn(registry, phone, bridgeSession)
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	phone.Behave(signerapp.Behaviour{Refuse: "Not authorized"})
	event := nostr.Event{Kind: 0, CreatedAt: nostr.Now()}
	refused := session.Account().Signer().SignEvent(within(t), &event)
	problem := fault.From(session.Stale(refused))
	if problem.Code != fault.AuthRequired || !problem.Retryable || problem.Details.(*sessions.Reconnect).Reason != "signer_not_authorized" {
		t.Errorf("a signer that refuses gives %v", problem)
	}
	if !session.Account().NeedsRecovery() {
		t.Error("the signer counts as usable")
	}
	other := errors.New("relay: not authorized")
	if session.Stale(other) != other {
		t.Error("an error of something else is taken for the signer's")
	}
}

func TestSignerRequestsAreTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	b.signIn(registry, phone, bridgeSession)
	session, err := registry.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.AwaitHydration(within(t)); err != nil { // it has the seed's backup signed
		t.Fatal(err)
	}
	end := session.Operation("token-1", "trace-1")
	event := nostr.Event{Kind: 30402, CreatedAt: nostr.Now()}
	if err := session.Account().Signer().SignEvent(within(t), &event); err != nil {
		t.Fatal(err)
	}
	end()
	event = nostr.Event{Kind: 31555, CreatedAt: nostr.Now()}
	if err := session.Account().Signer().SignEvent(within(t), &event); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.notices) != 1 {
		t.Fatalf("%d notices: %+v", len(b.notices), b.notices)
	}
}

// TestManyCallersOpenOnce has a signer that is slow to answer: all callers share the
// one question.
func TestManyCallersOpenOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	first := b.daemon()
	b.signIn(first, phone, bridgeSession)
	first.Close()
	phone.Behave(signerapp.Behaviour{Methods: []string{"get_public_key"}, DelayMillis: 200})
	registry := b.daemon()
	done := make(chan error, 50)
	for range 50 {
		go func() {
			_, err := registry.Session(within(t), guest.PublicKey)
			done <- err
		}()
	}
	for range 50 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if asked := phone.Count("get_public_key"); asked != 2 {
		t.Errorf("the signer was asked %d times in all, want once at the sign-in and once now", asked)
	}
}

// TestSignerThatClaimsAnotherAccount has a phone say that it acts for somebody else:
// its word must not take that account's place.
func TestSignerThatClaimsAnotherAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	victim, thief := b.market.Hosts[0], b.market.Guests[0]
	nsec, err := nip19.EncodePrivateKey(victim.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.SignInWithKey(within(t), secrets.NewSecret(nsec)); err != nil {
		t.Fatal(err)
	}
	phone := b.phone(thief)
	phone.Behave(signerapp.Behaviour{Methods: []string{"get_public_key"}, Result: victim.PublicKey})
	pending, err := registry.StartLogin("login-1", false)
	if err != nil {
		t.Fatal(err)
	}
	pending.Listen(within(t))
	if err := phone.Scan(within(t), pending.URI()); err != nil {
		t.Fatal(err)
	}
	signedIn, err := pending.Wait(within(t))
	if !fault.Is(err, fault.SessionConnectFailed) || signedIn.Pubkey != "" {
		t.Fatalf("the thief is signed in as %+v, %v", signedIn, err)
	}
	session, err := registry.Session(within(t), victim.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if account := session.Account(); account == nil || account.Credential() != secrets.PrivateKeyCredential {
		t.Errorf("the victim's sign-in was replaced: %+v", account)
	}
}

func TestSignInThatNobodyCollectedEndsWithItsAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	phone := b.phone(guest)
	pending, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	pending.Listen(within(t))
	if err := phone.Scan(within(t), pending.URI()); err != nil {
		t.Fatal(err)
	}
	waitUntilSignedIn(t, registry, guest.PublicKey)
	if err := registry.Logout(within(t), guest.PublicKey); err != nil {
		t.Fatal(err)
	}
	later, err := registry.Connect(bridgeSession, false)
	if err != nil {
		t.Fatal(err)
	}
	if collected, ok := later.Collect(); ok {
		t.Errorf("after signing out the sign-in of %s is handed out", collected.Pubkey)
	}
}

// waitUntilSignedIn looks at the session until somebody is signed in to it.
func waitUntilSignedIn(t *testing.T, registry *sessions.Registry, pubkey string) {
	t.Helper()
	ctx := within(t)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		session, err := registry.Opened(ctx, pubkey)
		if err != nil {
			t.Fatal(err)
		}
		if session.Account() != nil {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("nobody signed in")
		}
	}
}

func TestPendingSignInsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	first, err := registry.Connect("first", false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if _, err := registry.Connect(strconv.Itoa(i), false); err != nil {
			t.Fatal(err)
		}
	}
	again, err := registry.Connect("first", false)
	if err != nil {
		t.Fatal(err)
	}
	if again.URI() == first.URI() {
		t.Error("the oldest of 301 pending sign-ins is still there")
	}
}
