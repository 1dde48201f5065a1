package secrets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeKeyring returns a keyring on a fake command, and the folder of that.
func fakeKeyring(t testing.TB, name string) (*keyring, string) {
	t.Helper()
	path, folder := fakeTool(t, name)
	var tool keyringTool = secretTool{path: lookPath(path)}
	if name == "security" {
		tool = keychain{path: lookPath(path)}
	}
	return &keyring{tool: tool, turn: make(chan struct{}, 1)}, folder
}

func TestKeyringCommands(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"secret-tool": {
			"lookup service network.hostr.cli key auth",
			"store --label=Hostr auth service network.hostr.cli key auth",
			"lookup service network.hostr.cli key auth",
			"lookup service network.hostr.cli key auth",
			"clear service network.hostr.cli key auth",
			"lookup service network.hostr.cli key auth",
		},
		"security": {
			"find-generic-password -s network.hostr.cli -a auth -w",
			`add-generic-password -s network.hostr.cli -a auth -w ["canary"] -U`,
			"find-generic-password -s network.hostr.cli -a auth -w",
			"find-generic-password -s network.hostr.cli -a auth -w",
			"delete-generic-password -s network.hostr.cli -a auth",
			"find-generic-password -s network.hostr.cli -a auth -w",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keyring, folder := fakeKeyring(t, name)
			store := &Store{keyring}
			mustWrite(t, store, "auth", `["canary"]`)
			if got := mustRead(t, store, "auth"); got != `["canary"]` {
				t.Errorf("read %s", got)
			}
			if err := store.Delete(testContext(t), "auth"); err != nil {
				t.Fatal(err)
			}
			mustBeAbsent(t, store, "auth")
			calls := strings.Split(strings.TrimSpace(readFile(t, filepath.Join(folder, callsFile))), "\n")
			if got, want := strings.Join(calls, "\n"), strings.Join(want, "\n"); got != want {
				t.Errorf("calls\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestKeyringValues(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"secret-tool", "security"} {
		keyring, _ := fakeKeyring(t, name)
		store := &Store{keyring}
		for _, value := range []string{"", "x", `["a \" b","$HOME 'q'"]`, "ü" + strings.Repeat("x", 8000)} {
			mustWrite(t, store, "hostr-session/a b/seed", value)
			if got := mustRead(t, store, "hostr-session/a b/seed"); got != value {
				t.Errorf("%s: %.30q reads as %.30q", name, value, got)
			}
		}
		mustWrite(t, store, "auth", "secret = x")
		if keys, err := store.Keys(testContext(t)); err != nil || !slices.Equal(keys, []string{"auth", "hostr-session/a b/seed"}) {
			t.Errorf("%s: keys: %q, %v", name, keys, err)
		}
		if got := store.Place(); got.Kind != Keyring || got.Where == "" {
			t.Errorf("%s: place %v", name, got)
		}
		if err := store.Check(testContext(t)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSecretToolWouldCutTheValue(t *testing.T) {
	t.Parallel()
	keyring, _ := fakeKeyring(t, "secret-tool")
	store := &Store{keyring}
	mustWrite(t, store, "seed", strings.Repeat("x", maxSecretToolValue))
	mustFail(t, store.Write(testContext(t), "seed", strings.Repeat("canary78", 1024)), "8191 bytes", "encrypted file")
	if got := mustRead(t, store, "seed"); got != strings.Repeat("x", maxSecretToolValue) {
		t.Errorf("the entry has %d bytes now", len(got))
	}
}

func TestKeyringThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	keyring, folder := fakeKeyring(t, "secret-tool")
	store := &Store{keyring}
	mustWrite(t, store, "auth", "canary")

	for behaviour, words := range map[string]string{"locked": "keyring is locked", "strange": "ended with status 1"} {
		behave(t, folder, behaviour)
		_, _, err := store.Read(testContext(t), "auth")
		if coded := mustFail(t, err, words, "read from the keyring", keyVariable); !coded.Retryable {
			t.Errorf("%s is not retryable", behaviour)
		}
		mustFail(t, store.Write(testContext(t), "auth", "canary 2"), words)
		mustFail(t, store.Delete(testContext(t), "auth"), words)
	}
	behave(t, folder, "locked for writing")
	mustFail(t, store.Write(testContext(t), "auth", "canary 2"), "locked", "written to")
	behave(t, folder, "does not clear")
	mustFail(t, store.Delete(testContext(t), "auth"), "ended with status 1")

	behave(t, folder, "hangs")
	ctx, cancel := context.WithTimeout(testContext(t), 100*time.Millisecond)
	defer cancel()
	_, _, err := store.Read(ctx, "auth")
	mustFail(t, err, "deadline exceeded")
	cancelled, cancel := context.WithCancel(testContext(t))
	cancel()
	if _, _, err := store.Read(cancelled, "auth"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	behave(t, folder, "")
	if got := mustRead(t, store, "auth"); got != "canary" {
		t.Errorf("after all that the entry is %q", got)
	}
}

func TestKeychainFailures(t *testing.T) {
	t.Parallel()
	keyring, folder := fakeKeyring(t, "security")
	store := &Store{keyring}
	mustWrite(t, store, "auth", "canary")
	behave(t, folder, "locked")
	_, _, err := store.Read(testContext(t), "auth")
	mustFail(t, err, "macOS keychain", "locked")
	behave(t, folder, "foreign item") // refuses the update, so it is deleted and added
	mustWrite(t, store, "auth", "second")
	if got := mustRead(t, store, "auth"); got != "second" {
		t.Errorf("read %q", got)
	}
}

func TestNoKeyring(t *testing.T) {
	t.Parallel()
	withoutBus, busFolder := fakeKeyring(t, "secret-tool")
	behave(t, busFolder, "no bus")
	withoutService, serviceFolder := fakeKeyring(t, "secret-tool")
	behave(t, serviceFolder, "no service")
	missing := &keyring{tool: secretTool{path: lookPath(filepath.Join(t.TempDir(), "secret-tool"))}, turn: make(chan struct{}, 1)}
	for words, keyring := range map[string]*keyring{
		"no D-Bus session": withoutBus, "no Secret Service runs": withoutService,
		"secret-tool is not installed": missing, "of this operating system": newKeyring("plan9"),
	} {
		store := &Store{keyring}
		mustBeAbsent(t, store, "auth")
		if err := store.Delete(testContext(t), "auth"); err != nil {
			t.Errorf("delete: %v", err)
		}
		if keys, err := store.Keys(testContext(t)); err != nil || len(keys) > 0 {
			t.Errorf("keys: %q, %v", keys, err)
		}
		for _, err := range []error{store.Write(testContext(t), "auth", "canary"), store.Check(testContext(t))} {
			mustFail(t, err, "no place to keep private keys", words, "libsecret-tools", keyVariable, "--secrets-key-file",
				"--allow-insecure-file-secrets", allowVariable+"=1")
			if !errors.Is(err, ErrNoBackend) {
				t.Errorf("%v is not ErrNoBackend", err)
			}
		}
	}
	if got := (&Store{missing}).Place(); got != (Place{None, ""}) {
		t.Errorf("place %v", got)
	}
}

// TestRealSecretService talks to the keyring of the session that runs the test. It
// is asked for, since it writes there.
func TestRealSecretService(t *testing.T) {
	if os.Getenv("HOSTR_TEST_REAL_KEYRING") != "1" {
		t.Skip("HOSTR_TEST_REAL_KEYRING=1 runs it in a session with a keyring")
	}
	store := &Store{newKeyring("linux")}
	const key = "hostr-daemon/test"
	if err := store.Delete(testContext(t), key); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{`["a"]`, `["ü \" $x"]`, strings.Repeat("x", maxSecretToolValue)} {
		mustWrite(t, store, key, value)
		if got := mustRead(t, store, key); got != value {
			t.Errorf("%.20q reads as %.20q", value, got)
		}
	}
	if keys, err := store.Keys(testContext(t)); err != nil || !slices.Contains(keys, key) {
		t.Errorf("keys: %q, %v", keys, err)
	}
	if err := store.Delete(testContext(t), key); err != nil {
		t.Fatal(err)
	}
	mustBeAbsent(t, store, key)
	if err := store.Check(testContext(t)); err != nil {
		t.Error(err)
	}
}
