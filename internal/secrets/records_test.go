package secrets

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hostr-daemon/internal/fault"
)

// oldStateDir is a folder with the secrets file of the old daemon in it.
func oldStateDir(t testing.TB) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "old-secrets.json"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, plainName), string(content), 0o600)
	return folder
}

func TestOldStateDirectory(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{PlainFile, EncryptedFile} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			store := fileStore(kind, oldStateDir(t))
			ctx := testContext(t)
			for session, want := range map[string]struct {
				credential CredentialType
				pubkey     string
				index      int
			}{
				"":           {MnemonicCredential, mnemonicPubkey, 4},
				vectorPubkey: {PrivateKeyCredential, vectorPubkey, -1},
				secondPubkey: {BunkerCredential, secondPubkey, 2},
				" old-hex\t": {PrivateKeyCredential, secondPubkey, -1},
				"old-nsec":   {PrivateKeyCredential, vectorPubkey, -1},
			} {
				identity, ok, err := ForSession(store, session).Identity(ctx)
				if err != nil || !ok {
					t.Errorf("%q: %v, %v", session, ok, err)
					continue
				}
				if identity.CredentialType != want.credential || identity.PublicKey != want.pubkey || identity.MaxAccountIndex != want.index {
					t.Errorf("%q: %v", session, identity)
				}
			}
			for _, session := range []string{"signed-out", "never seen"} {
				if identity, ok, err := ForSession(store, session).Identity(ctx); ok || err != nil {
					t.Errorf("%s: %v, %v", session, identity, err)
				}
			}
			seed, ok, err := ForSession(store, vectorPubkey).Seed(ctx, vectorPubkey)
			if err != nil || !ok || seed.Reveal() != "80a5e1565a3e75137602f7837d04429a417ffcdb19e3f81c4f9b81254f71119a" {
				t.Errorf("seed: %v, %v", ok, err)
			}
			wallets, err := ForSession(store, secondPubkey).WalletConnections(ctx, secondPubkey)
			if err != nil || len(wallets) != 1 || !strings.HasPrefix(wallets[0].Reveal(), "nostr+walletconnect://"+mnemonicPubkey+"?relay=") {
				t.Errorf("wallets: %d, %v", len(wallets), err)
			}
			sessions, err := SessionKeys(ctx, store)
			if want := []string{"", vectorPubkey, secondPubkey, "old-hex", "old-nsec", "signed-out"}; err != nil || !slices.Equal(sessions, want) {
				t.Errorf("sessions %v, %v", sessions, err)
			}
			if got := mustRead(t, store, "something/else"); got != "kept" {
				t.Errorf("the foreign entry is %q", got)
			}
		})
	}
}

// TestOldDaemonReadsWhatIsWritten checks the exact text, layer by layer.
func TestOldDaemonReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	store := fileStore(PlainFile, folder)
	records := ForSession(store, vectorPubkey)
	identity, err := NewPrivateKeyIdentity(NewSecret(vectorNsec))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := records.SignIn(testContext(t), identity); err != nil {
		t.Fatal(err)
	}
	if err := records.SetSeed(testContext(t), vectorPubkey, NewSecret(strings.Repeat("AB", 32))); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("$P", vectorPubkey, "$E", vectorKey, "$S", strings.Repeat("ab", 32)).Replace(`{
  "hostr-session/$P/auth": "[\"{\\\"version\\\":1,\\\"credentialType\\\":\\\"private_key\\\",\\\"secret\\\":\\\"$E\\\",\\\"publicKey\\\":\\\"$P\\\",\\\"maxAccountIndex\\\":-1,\\\"keyPair\\\":{\\\"privateKey\\\":\\\"$E\\\",\\\"publicKey\\\":\\\"$P\\\"}}\"]",
  "hostr-session/$P/seed": "[\"$P:$S\"]"
}`)
	if got := readFile(t, filepath.Join(folder, plainName)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	store := fileStore(PlainFile, t.TempDir())
	ctx := testContext(t)
	one, two := testAccount(t, 1), testAccount(t, 2)
	records := ForSession(store, "session")
	signIn := func(identity Identity, want int) {
		t.Helper()
		stored, err := records.SignIn(ctx, identity)
		if err != nil || stored.MaxAccountIndex != want {
			t.Fatalf("stored with index %d, %v, want %d", stored.MaxAccountIndex, err, want)
		}
		read, ok, err := records.Identity(ctx)
		if err != nil || !ok || read.record() != stored.record() {
			t.Fatalf("read %v, %v, %v", read, ok, err)
		}
	}
	signIn(one.identity, -1)
	if highest, err := records.RaiseMaxAccountIndex(ctx, one.pubkey, 5); err != nil || highest != 5 {
		t.Fatalf("raised to %d, %v", highest, err)
	}
	if highest, err := records.RaiseMaxAccountIndex(ctx, one.pubkey, 3); err != nil || highest != 5 {
		t.Fatalf("raised to %d, %v", highest, err)
	}
	signIn(one.identity, 5)
	bunker, err := NewBunkerIdentity(one.pubkey, BunkerConnection{PrivateKey: NewSecret(two.key), RemotePubkey: two.pubkey, Relays: []string{"wss://a.example"}})
	if err != nil {
		t.Fatal(err)
	}
	signIn(bunker, 5) // the same account by another way
	signIn(two.identity, -1)
	other := ForSession(store, "session") // as another part of the program has it
	if _, err := other.RaiseMaxAccountIndex(ctx, two.pubkey, 4); err != nil {
		t.Fatal(err)
	}
	if read, _, err := records.Identity(ctx); err != nil || read.MaxAccountIndex != 4 {
		t.Fatalf("read an old record: %v, %v", read, err)
	}
	if err := records.SignOut(ctx); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := records.Identity(ctx); ok || err != nil {
		t.Errorf("still signed in, or %v", err)
	}
	if err := records.SignOut(ctx); err != nil {
		t.Errorf("signing out again: %v", err)
	}
	_, err = records.RaiseMaxAccountIndex(ctx, one.pubkey, 9)
	if !fault.Is(err, fault.AuthRequired) || !errors.Is(err, ErrSignedOut) {
		t.Errorf("got %v", err)
	}
	_, err = records.SignIn(ctx, Identity{})
	mustFail(t, err, "was not stored", "credentialType")
	mustBeAbsent(t, store, "hostr-session/session/auth")
}

func TestIndexOfAnotherAccountIsNotTouched(t *testing.T) {
	t.Parallel()
	records := ForSession(fileStore(PlainFile, t.TempDir()), "x")
	one, two := testAccount(t, 1), testAccount(t, 2)
	if _, err := records.SignIn(testContext(t), one.identity); err != nil {
		t.Fatal(err)
	}
	if _, err := records.RaiseMaxAccountIndex(testContext(t), two.pubkey, 9); !errors.Is(err, ErrSignedOut) {
		t.Errorf("got %v", err)
	}
	if identity, _, err := records.Identity(testContext(t)); err != nil || identity.MaxAccountIndex != -1 {
		t.Errorf("index %d, %v", identity.MaxAccountIndex, err)
	}
}

func TestUnreadableSignInIsLeftAlone(t *testing.T) {
	t.Parallel()
	store := fileStore(PlainFile, t.TempDir())
	ctx := testContext(t)
	const session = "0123456789abcdef"
	records := ForSession(store, session)
	mustWrite(t, store, "hostr-session/"+session+"/auth", `["canary"]`)
	_, _, err := records.Identity(ctx)
	coded := mustFail(t, err, "session 01234567…", "sign-in is unreadable", "Sign in again")
	if !errors.Is(err, ErrUnreadableIdentity) || strings.Contains(coded.Message, session) {
		t.Errorf("got %v", err)
	}
	_, err = records.RaiseMaxAccountIndex(ctx, vectorPubkey, 1)
	mustFail(t, err, "unreadable")
	if got := mustRead(t, store, "hostr-session/"+session+"/auth"); got != `["canary"]` {
		t.Errorf("the entry is %s now", got)
	}
	if _, err := records.SignIn(ctx, testAccount(t, 1).identity); err != nil {
		t.Errorf("a new sign-in: %v", err)
	}
}

// A list without an element is nobody; what is damaged is not.
func TestSignedOutOrDamaged(t *testing.T) {
	t.Parallel()
	store := fileStore(PlainFile, t.TempDir())
	ctx := testContext(t)
	records := ForSession(store, "")
	record := testAccount(t, 1).identity.record()
	whole := encodeJSON([]string{record})
	for text, damaged := range map[string]bool{
		"": false, " \n": false, "[]": false, " [ ] ": false, `[" "]`: false, `["",""]`: false,
		"canary": true, "{}": true, "null": true, "5": true, `"x"`: true, "[7]": true, "[null]": true, "[": true, `["`: true,
		record: true, whole[:len(whole)-1]: true, whole[:20]: true, whole[1:]: true, `["{\"version\":1,"]`: true,
	} {
		mustWrite(t, store, "auth", text)
		_, ok, err := records.Identity(ctx)
		if ok || errors.Is(err, ErrUnreadableIdentity) != damaged || !damaged && err != nil {
			t.Errorf("%.20q: %v, %v", text, ok, err)
		}
		if _, err := records.RaiseMaxAccountIndex(ctx, vectorPubkey, 1); errors.Is(err, ErrUnreadableIdentity) != damaged || err == nil {
			t.Errorf("%.20q: raising the index: %v", text, err)
		}
		if got := mustRead(t, store, "auth"); got != text {
			t.Errorf("%.20q was changed", text)
		}
	}
	if _, err := records.SignIn(ctx, testAccount(t, 1).identity); err != nil {
		t.Errorf("a new sign-in: %v", err)
	}
}

func TestListsOfSeveralAccounts(t *testing.T) {
	t.Parallel()
	store := fileStore(PlainFile, t.TempDir())
	ctx := testContext(t)
	one, two := testAccount(t, 1), testAccount(t, 2)
	records := ForSession(store, "")
	for _, account := range []account{one, two} {
		if err := records.SetSeed(ctx, account.pubkey, NewSecret(account.seed)); err != nil {
			t.Fatal(err)
		}
	}
	if err := records.SetSeed(ctx, one.pubkey, NewSecret(two.seed)); err != nil {
		t.Fatal(err)
	}
	if got, want := mustRead(t, store, "seed"), encodeJSON([]string{two.pubkey + ":" + two.seed, one.pubkey + ":" + two.seed}); got != want {
		t.Errorf("seeds %s, want %s", got, want)
	}
	mustFail(t, records.SetSeed(ctx, one.pubkey, NewSecret("canary")), "64 hex digits")
	if _, ok, err := records.Seed(ctx, ""); ok || err != nil {
		t.Errorf("a seed of nobody: %v", err)
	}
	if err := records.SetSeed(ctx, "", NewSecret(one.seed)); err != nil {
		t.Errorf("a seed for nobody: %v", err)
	}
	mustWrite(t, store, "seed", encodeJSON([]string{one.pubkey + ":short", one.pubkey + ":" + strings.ToUpper(one.seed), "no colon"}))
	if seed, ok, err := records.Seed(ctx, one.pubkey); !ok || err != nil || seed.Reveal() != one.seed {
		t.Errorf("the first seed that is one: %v, %v", ok, err)
	}

	uris := []Secret{NewSecret("nostr+walletconnect://a?secret=1:2"), NewSecret("nostr+walletconnect://b")}
	if err := records.SetWalletConnections(ctx, one.pubkey, uris); err != nil {
		t.Fatal(err)
	}
	got, err := records.WalletConnections(ctx, one.pubkey)
	if err != nil || len(got) != 2 || !got[0].Equal(uris[0]) || !got[1].Equal(uris[1]) {
		t.Errorf("%d connections, %v", len(got), err)
	}
	if got, err := records.WalletConnections(ctx, two.pubkey); err != nil || len(got) != 0 {
		t.Errorf("%d connections of another account, %v", len(got), err)
	}
	if err := records.SetWalletConnections(ctx, one.pubkey, nil); err != nil {
		t.Fatal(err)
	}
	mustBeAbsent(t, store, "nwc")
}

func TestMessageCacheKey(t *testing.T) {
	t.Parallel()
	store := fileStore(PlainFile, t.TempDir())
	ctx := testContext(t)
	one, two := testAccount(t, 1), testAccount(t, 2)
	records := ForSession(store, one.pubkey)

	var mu sync.Mutex
	keys, makers := map[string]int{}, 0
	var askers sync.WaitGroup
	for range 8 {
		askers.Go(func() {
			key, made, err := records.MessageCacheKey(ctx, one.pubkey)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			keys[key.Reveal()]++
			if made {
				makers++
			}
		})
	}
	askers.Wait()
	if len(keys) != 1 || makers != 1 {
		t.Errorf("%d keys, made by %d", len(keys), makers)
	}
	for key := range keys {
		if !isHexKey(key) {
			t.Errorf("a key has %d digits", len(key))
		}
	}
	other, made, err := records.MessageCacheKey(ctx, two.pubkey)
	if err != nil || !made || keys[other.Reveal()] > 0 {
		t.Errorf("the key of another account: %v, %v", made, err)
	}
	if err := records.DeleteMessageCacheKey(ctx, one.pubkey); err != nil {
		t.Fatal(err)
	}
	if key, made, err := records.MessageCacheKey(ctx, one.pubkey); err != nil || !made || keys[key.Reveal()] > 0 {
		t.Errorf("after the deletion: %v, %v", made, err)
	}
	if key, made, err := records.MessageCacheKey(ctx, two.pubkey); err != nil || made || !key.Equal(other) {
		t.Errorf("the other account's key: %v, %v", made, err)
	}
	if _, made, err := records.MessageCacheKey(ctx, ""); made || err != nil {
		t.Errorf("a key for nobody: %v, %v", made, err)
	}
	nowhere := ForSession(&Store{newKeyring("plan9")}, "")
	if _, _, err := nowhere.MessageCacheKey(ctx, one.pubkey); !errors.Is(err, ErrNoBackend) {
		t.Errorf("got %v", err)
	}
}
