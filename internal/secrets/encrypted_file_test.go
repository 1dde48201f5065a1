package secrets

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEncryptedFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, encryptedName)
	store := &Store{newEncryptedFile(path, "", quickKey)} // with the real key derivation
	mustBeAbsent(t, store, "auth")
	mustWrite(t, store, "auth", "canary one")
	first := readFile(t, path)
	mustWrite(t, store, "hostr-session/a/auth", "canary two")
	second := readFile(t, path)

	checkMode(t, path, 0o600)
	if strings.Contains(second, "canary") || strings.Contains(second, "auth") {
		t.Error("the file can be read")
	}
	if first[:headerLength] != second[:headerLength] {
		t.Error("the salt did not stay")
	}
	if first[headerLength:headerLength+nonceLength] == second[headerLength:headerLength+nonceLength] {
		t.Error("a nonce was used twice")
	}
	again := &Store{newEncryptedFile(path, "", quickKey)}
	if one, two := mustRead(t, again, "auth"), mustRead(t, again, "hostr-session/a/auth"); one != "canary one" || two != "canary two" {
		t.Errorf("read %q and %q", one, two)
	}
	if got := again.Place(); got != (Place{EncryptedFile, path}) {
		t.Errorf("place %v", got)
	}
}

// TestFileOfVersionOne was written by the first release: it must open for ever.
func TestFileOfVersionOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join("testdata", "secrets-v1.enc")
	content := []byte(readFile(t, path))
	entries, err := newEnvelope(NewSecret("fixture key 0123456789")).decode(content)
	if got, _ := entries.value("auth"); err != nil || got != `["x"]` {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := newEnvelope(NewSecret("fixture key 012345678")).decode(content); !errors.Is(err, ErrWrongKey) {
		t.Errorf("with another key: %v", err)
	}
}

func TestWrongKey(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, encryptedName)
	mustWrite(t, fileStore(EncryptedFile, folder), "auth", "canary")
	before := readFile(t, path)
	for _, key := range []string{"canary key of others", quickKey.Reveal() + " "} {
		store := &Store{quickEncrypted(path, "", NewSecret(key))}
		_, _, err := store.Read(testContext(t), "auth")
		mustFail(t, err, path, "key does not fit", "left as it is", keyVariable)
		if !errors.Is(err, ErrWrongKey) {
			t.Errorf("%v is not ErrWrongKey", err)
		}
		mustFail(t, store.Write(testContext(t), "auth", "canary"), "key does not fit")
		mustFail(t, store.Check(testContext(t)), "key does not fit")
	}
	if readFile(t, path) != before {
		t.Error("the file was changed")
	}
}

func TestTamperedFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, encryptedName)
	mustWrite(t, fileStore(EncryptedFile, folder), "auth", "canary")
	good := []byte(readFile(t, path))
	for at := range good {
		for name, content := range map[string][]byte{
			"changed": append(append(bytes.Clone(good[:at]), good[at]^0x10), good[at+1:]...),
			"cut off": good[:at],
		} {
			writeFile(t, path, string(content), 0o600)
			store := fileStore(EncryptedFile, folder)
			_, _, err := store.Read(testContext(t), "auth")
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrWrongKey) {
				t.Fatalf("%s at byte %d: %v", name, at, err)
			}
			if at >= headerLength && !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s at byte %d of the body: %v", name, at, err)
			}
			mustFail(t, store.Write(testContext(t), "auth", "canary"), "left as it is")
			if readFile(t, path) != string(content) {
				t.Fatalf("%s at byte %d: the file was overwritten", name, at)
			}
		}
	}
	writeFile(t, path, string(good)+"more", 0o600)
	_, _, err := fileStore(EncryptedFile, folder).Read(testContext(t), "auth")
	mustFail(t, err, "damaged", "something in it was changed")
	writeFile(t, path, magicStart+"2\n"+string(good), 0o600)
	_, _, err = fileStore(EncryptedFile, folder).Read(testContext(t), "auth")
	mustFail(t, err, "newer hostr-daemon")
	writeFile(t, path, string(good), 0o600)
	mustRead(t, fileStore(EncryptedFile, folder), "auth")
}

func TestPlainEntriesMoveIn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	plain := filepath.Join(folder, plainName)
	writeFile(t, plain, `{"auth":"a","other":{"x":1}}`, 0o644)
	writeFile(t, plain+temporarySuffix, `{"auth":"half`, 0o600)
	store := fileStore(EncryptedFile, folder)
	if a, b := mustRead(t, store, "auth"), mustRead(t, store, "other"); a != "a" || b != `{"x":1}` {
		t.Errorf("read %s and %s", a, b)
	}
	for _, gone := range []string{plain, plain + temporarySuffix} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", filepath.Base(gone), err)
		}
	}
	mustRead(t, fileStore(EncryptedFile, folder), "auth")

	elsewhere := filepath.Join(t.TempDir(), "real.json")
	writeFile(t, elsewhere, `{"linked":"b"}`, 0o600)
	if err := os.Symlink(elsewhere, plain); err != nil {
		t.Fatal(err)
	}
	mustRead(t, fileStore(EncryptedFile, folder), "linked")
	for _, gone := range []string{plain, elsewhere} {
		if _, err := os.Lstat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", filepath.Base(gone), err)
		}
	}
}

// TestPlainEntriesMoveInAgain is what is left by a crash before the plain file was
// removed, and by a daemon that ran without the key in between.
func TestPlainEntriesMoveInAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	plain := filepath.Join(folder, plainName)
	account, other := testAccount(t, 1), testAccount(t, 2)
	store := fileStore(EncryptedFile, folder)
	records := ForSession(store, "")
	identity := account.identity
	identity.MaxAccountIndex = 7
	if _, err := records.SignIn(testContext(t), identity); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, store, "seed", encodeJSON([]string{account.pubkey + ":" + account.seed, other.pubkey + ":" + other.seed}))
	mustWrite(t, store, "kept", "encrypted")

	former := document{}.
		with("auth", encodeJSON([]string{account.identity.record()}), true).
		with("seed", encodeJSON([]string{account.pubkey + ":" + other.seed}), true).
		with("kept", "plain", true).
		with("new", "plain", true)
	text, err := former.text()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, plain, string(text), 0o600)

	store = fileStore(EncryptedFile, folder)
	records = ForSession(store, "")
	if got := mustRead(t, store, "new") + mustRead(t, store, "kept"); got != "plainplain" {
		t.Errorf("the later entries do not count: %s", got)
	}
	if got, _, err := records.Identity(testContext(t)); err != nil || got.MaxAccountIndex != 7 {
		t.Errorf("the index fell to %d, %v", got.MaxAccountIndex, err)
	}
	for account, want := range map[string]string{account.pubkey: other.seed, other.pubkey: other.seed} {
		if seed, ok, err := records.Seed(testContext(t), account); !ok || err != nil || seed.Reveal() != want {
			t.Errorf("a seed is lost: %v, %v", ok, err)
		}
	}
}

func TestPlainFileThatCannotMoveIn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	plain := filepath.Join(folder, plainName)
	mustWrite(t, fileStore(EncryptedFile, folder), "auth", "canary")
	writeFile(t, plain, `{"auth":canary}`, 0o600)
	store := fileStore(EncryptedFile, folder)
	_, _, err := store.Read(testContext(t), "auth")
	mustFail(t, err, plain, "cannot be moved into the encrypted one", "no JSON")
	if readFile(t, plain) != `{"auth":canary}` {
		t.Error("the plain file was changed")
	}
	writeFile(t, plain, `{"second":"x"}`, 0o600) // mended while the daemon runs
	mustRead(t, store, "auth")
	mustRead(t, store, "second")
}

func TestWrongKeyMovesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	plain := filepath.Join(folder, plainName)
	mustWrite(t, fileStore(EncryptedFile, folder), "auth", "canary")
	writeFile(t, plain, `{"second":"x"}`, 0o600)
	store := &Store{quickEncrypted(filepath.Join(folder, encryptedName), plain, NewSecret("another key 0123456"))}
	_, _, err := store.Read(testContext(t), "second")
	mustFail(t, err, "key does not fit")
	if readFile(t, plain) != `{"second":"x"}` {
		t.Error("the plain file was changed")
	}
}

// migratingStore is an encrypted file with a fake keyring as its former place.
func migratingStore(t *testing.T) (store *Store, former *Store, folder string) {
	t.Helper()
	keyring, folder := fakeKeyring(t, "secret-tool")
	file := quickEncrypted(filepath.Join(t.TempDir(), encryptedName), "", quickKey)
	return &Store{newMigrating(file, keyring)}, &Store{keyring}, folder
}

func TestKeyringEntriesMoveWhenAskedFor(t *testing.T) {
	t.Parallel()
	store, former, folder := migratingStore(t)
	mustWrite(t, former, "auth", "canary")
	mustWrite(t, former, "seed", "canary seed")
	if got := mustRead(t, store, "auth"); got != "canary" {
		t.Errorf("read %q", got)
	}
	mustBeAbsent(t, former, "auth")
	if got := mustRead(t, former, "seed"); got != "canary seed" {
		t.Errorf("an entry that nobody asked for is %q", got)
	}
	err := store.Update(testContext(t), "seed", func(old string, stored bool) (string, bool, error) {
		return old + " and more", stored, nil
	})
	if got := mustRead(t, store, "seed"); err != nil || got != "canary seed and more" {
		t.Errorf("after the update %q, %v", got, err)
	}
	mustBeAbsent(t, store, "none")
	calls := readFile(t, filepath.Join(folder, callsFile))
	mustBeAbsent(t, store, "none")
	if readFile(t, filepath.Join(folder, callsFile)) != calls {
		t.Error("the keyring was asked twice for an entry it does not have")
	}
}

func TestDeletedEntryDoesNotComeBack(t *testing.T) {
	t.Parallel()
	store, former, folder := migratingStore(t)
	mustWrite(t, former, "auth", "canary")
	behave(t, folder, "does not clear") // as after a crash between the two writes
	mustRead(t, store, "auth")
	mustFail(t, store.Delete(testContext(t), "auth"), "may still be in the keyring")
	behave(t, folder, "")
	mustBeAbsent(t, store, "auth")
	if err := store.Delete(testContext(t), "auth"); err != nil {
		t.Fatal(err)
	}
	mustBeAbsent(t, former, "auth")
}

func TestFormerKeyringThatFailsIsLeftAlone(t *testing.T) {
	t.Parallel()
	store, former, folder := migratingStore(t)
	mustWrite(t, former, "auth", "canary")
	behave(t, folder, "locked")
	mustBeAbsent(t, store, "auth")
	mustWrite(t, store, "other", "x")
	if err := store.Check(testContext(t)); err != nil {
		t.Error(err)
	}
	behave(t, folder, "")
	if got := mustRead(t, former, "auth"); got != "canary" {
		t.Errorf("the keyring holds %q", got)
	}
}
