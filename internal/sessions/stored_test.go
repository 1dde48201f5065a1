package sessions_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/sessions"
)

func authEntry(person sandbox.Person) string { return "hostr-session/" + person.PublicKey + "/auth" }

func signInWithKey(t *testing.T, registry *sessions.Registry, person sandbox.Person) {
	t.Helper()
	if _, err := registry.SignInWithKey(within(t), secrets.NewSecret(person.NSec)); err != nil {
		t.Fatal(err)
	}
}

// TestRemovedSignInIsSignedOut removes a stored sign-in behind the daemon's back; that
// of another account goes on.
func TestRemovedSignInIsSignedOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest, host := b.market.Guests[0], b.market.Hosts[0]
	signInWithKey(t, registry, guest)
	signInWithKey(t, registry, host)
	if err := b.secrets().Delete(within(t), authEntry(guest)); err != nil {
		t.Fatal(err)
	}
	session, err := registry.Opened(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Check(within(t), "Testing"); !fault.Is(err, fault.AuthRequired) {
		t.Errorf("without a stored sign-in: %v", err)
	}
	if status, err := session.Status(within(t)); err != nil || status.ActivePubkey != "" {
		t.Errorf("without a stored sign-in: %+v, %v", status, err)
	}
	other, err := registry.Opened(within(t), host.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Check(within(t), "Testing"); err != nil {
		t.Errorf("the other account: %v", err)
	}
	signInWithKey(t, registry, guest)
	if _, err := session.Check(within(t), "Testing"); err != nil {
		t.Errorf("signed in anew: %v", err)
	}
}

// unreadableEntries are stored sign-ins that nobody can be signed in with.
var unreadableEntries = map[string]string{
	"no key":             `["no key at all"]`,
	"an empty record":    `["{\"secret\":\"\"}"]`,
	"a mnemonic of none": `["{\"credentialType\":\"mnemonic\",\"secret\":\"abandon abandon\"}"]`,
}

// TestUnreadableSignIn has an entry under an account's key that is no sign-in: it is
// told, left alone, and replaced by signing in under that very key.
func TestUnreadableSignIn(t *testing.T) {
	t.Parallel()
	for name, entry := range unreadableEntries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			registry := b.daemon()
			guest := b.market.Guests[0]
			if err := b.secrets().Write(within(t), authEntry(guest), entry); err != nil {
				t.Fatal(err)
			}
			session, err := registry.Opened(within(t), guest.PublicKey)
			if err != nil {
				t.Fatalf("opening, which a new sign-in has to: %v", err)
			}
			if _, err := session.Check(within(t), "Testing"); !errors.Is(err, secrets.ErrUnreadableIdentity) {
				t.Errorf("checking: %v", err)
			}
			if _, err := session.Status(within(t)); !errors.Is(err, secrets.ErrUnreadableIdentity) {
				t.Errorf("asking for the status: %v", err)
			}
			if kept, _, err := b.secrets().Read(within(t), authEntry(guest)); err != nil || kept != entry {
				t.Errorf("the entry is %q now, %v", kept, err)
			}
			b.signIn(registry, b.phone(guest), guest.PublicKey)
			if _, err := session.Check(within(t), "Testing"); err != nil {
				t.Errorf("signed in under that key: %v", err)
			}
		})
	}
}

// TestUnreadableSignInThatIsMended reads again what was put in order.
func TestUnreadableSignInThatIsMended(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest := b.market.Guests[0]
	for _, entry := range []string{`["no key at all"]`, `["` + guest.NSec + `"]`} {
		if err := b.secrets().Write(within(t), authEntry(guest), entry); err != nil {
			t.Fatal(err)
		}
		if _, err := registry.Opened(within(t), guest.PublicKey); err != nil {
			t.Fatal(err)
		}
	}
	session, err := registry.Opened(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Check(within(t), "Testing"); err != nil {
		t.Error(err)
	}
}

// TestLogoutOfAnUnreadableSignIn leaves nothing of that session, and the others as they
// are; unfinished payments under the key keep it, as they keep any.
func TestLogoutOfAnUnreadableSignIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	registry := b.daemon()
	guest, host := b.market.Guests[0], b.market.Hosts[0]
	signInWithKey(t, registry, host)
	if err := b.secrets().Write(within(t), authEntry(guest), `["no key at all"]`); err != nil {
		t.Fatal(err)
	}
	database, err := sql.Open("sqlite3", filepath.Join(b.state, "test.sqlite3"))
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	if _, err := database.Exec(`INSERT INTO operations (pubkey, namespace, id, is_terminal, data) VALUES (?, 'swap_in', 's1', 0, '{"id":"s1","isTerminal":false}')`, guest.PublicKey); err != nil {
		t.Fatal(err)
	}
	if err := registry.Logout(within(t), guest.PublicKey); !fault.Is(err, fault.PendingSwaps) {
		t.Errorf("with a swap under way: %v", err)
	}
	if _, err := database.Exec(`DELETE FROM operations`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := registry.Logout(within(t), guest.PublicKey); err != nil {
			t.Fatal(err)
		}
	}
	if _, stored, err := b.secrets().Read(within(t), authEntry(guest)); stored || err != nil {
		t.Errorf("the entry is still there: %t, %v", stored, err)
	}
	if _, stored, err := b.secrets().Read(within(t), authEntry(host)); !stored || err != nil {
		t.Errorf("the other account's entry is gone: %t, %v", !stored, err)
	}
	session, err := registry.Opened(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Check(within(t), "Testing"); !fault.Is(err, fault.AuthRequired) {
		t.Errorf("signed out: %v", err)
	}
}

// TestAskingTheSignerStartsNothing asks as the doctor does: one question reaches the
// signer, and nothing the relay as the account.
func TestAskingTheSignerStartsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	guest, host := b.market.Guests[0], b.market.Hosts[0]
	phone := b.phone(guest)
	first := b.daemon()
	b.signIn(first, phone, bridgeSession)
	signInWithKey(t, first, host)
	session, err := first.Session(within(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.AwaitHydration(within(t)); err != nil {
		t.Fatal(err)
	}
	first.Close()
	asked := phone.Count("")
	registry := b.daemon()
	stored, silence, err := registry.AskSigner(within(t), guest.PublicKey)
	if err != nil || silence != nil || stored.Pubkey != guest.PublicKey || stored.Credential != secrets.BunkerCredential {
		t.Errorf("the phone: %+v, %v, %v", stored, silence, err)
	}
	stored, silence, err = registry.AskSigner(within(t), host.PublicKey)
	if err != nil || silence != nil || stored.Credential != secrets.PrivateKeyCredential {
		t.Errorf("the local key: %+v, %v, %v", stored, silence, err)
	}
	if _, _, err := registry.AskSigner(within(t), b.market.Hosts[1].PublicKey); !errors.Is(err, sessions.ErrNotStored) {
		t.Errorf("nobody: %v", err)
	}
	registry.Close() // waits for whatever was begun
	if more := phone.Count("") - asked; more != 1 || phone.Count("get_public_key") != 2 {
		t.Errorf("the signer was asked %d times, want once who it signs for", more)
	}
	phone.Behave(signerapp.Behaviour{Silent: true})
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if _, silence, err := b.daemon().AskSigner(cut, guest.PublicKey); err != nil || silence == nil {
		t.Errorf("a signer that is not waited for: %v, %v", silence, err)
	}
}
