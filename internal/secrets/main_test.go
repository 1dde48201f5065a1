package secrets

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hostr-daemon/internal/fault"
)

// roleVariable makes the test binary another program: a process that uses the
// store, or a keyring command.
const roleVariable = "HOSTR_SECRETS_TEST_ROLE"

// endAtOnce keeps the race detector from a second's pause at the end of a process.
const endAtOnce = "GORACE=atexit_sleep_ms=0"

// roles are what a process of this binary can be.
var roles = map[string]func() int{
	"writer": writeUntilKilled, "counter": countUp, "mover": moveOnce, "carrier": carryOnce,
	"secret-tool": fakeSecretTool, "security": fakeSecurity,
}

func TestMain(m *testing.M) {
	if play := roles[os.Getenv(roleVariable)]; play != nil {
		os.Exit(play())
	}
	goleak.VerifyTestMain(m)
}

// child returns a command that runs this binary in a role.
func child(t testing.TB, role string, variables ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(testContext(t), self)
	command.Env = append(os.Environ(), append(variables, roleVariable+"="+role, endAtOnce)...)
	command.Stderr = os.Stderr
	return command
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// quickKey is the key of encrypted files in tests.
var quickKey = NewSecret("canary key of the tests")

// quickEncrypted is an encrypted file whose key is not stretched, for tests that
// are not about that.
func quickEncrypted(path, former string, key Secret) *file {
	opened := newEncryptedFile(path, former, key)
	opened.codec.(*envelope).derive = quickStretch
	return opened
}

func quickStretch(key, salt []byte) []byte {
	first := sha256.Sum256(append(append([]byte{}, key...), salt...))
	second := sha256.Sum256(first[:])
	return append(first[:], second[:keyCheckLength]...)
}

// fileStore opens a file of either kind in a folder.
func fileStore(kind Kind, folder string) *Store {
	plain, encrypted := filepath.Join(folder, plainName), filepath.Join(folder, encryptedName)
	if kind == EncryptedFile {
		return &Store{quickEncrypted(encrypted, plain, quickKey)}
	}
	return &Store{newPlainFile(plain)}
}

func mustWrite(t testing.TB, store *Store, key, value string) {
	t.Helper()
	if err := store.Write(testContext(t), key, value); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, store *Store, key string) string {
	t.Helper()
	value, ok, err := store.Read(testContext(t), key)
	if err != nil || !ok {
		t.Fatalf("reading %s: %v, %v", key, ok, err)
	}
	return value
}

func mustBeAbsent(t testing.TB, store *Store, key string) {
	t.Helper()
	if value, ok, err := store.Read(testContext(t), key); ok || err != nil {
		t.Fatalf("%s is there with %d bytes, or %v", key, len(value), err)
	}
}

// mustFail checks a coded error: what it says, and that it says nothing secret.
func mustFail(t testing.TB, err error, words ...string) *fault.Error {
	t.Helper()
	var coded *fault.Error
	if !errors.As(err, &coded) {
		t.Fatalf("got %v, want a coded error", err)
	}
	all := coded.Message + " " + coded.Hint
	for _, word := range words {
		if !strings.Contains(all, word) {
			t.Errorf("%q lacks %q", all, word)
		}
	}
	if printed := fmt.Sprintf("%v %+v %#v", err, err, err) + all; strings.Contains(printed, "canary") {
		t.Errorf("a secret is in the error: %s", printed)
	}
	return coded
}

func writeFile(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// numbered is a value that tells its number and whether it is whole.
func numbered(n int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(n)))
	return fmt.Sprintf("%d:%s", n, strings.Repeat(fmt.Sprintf("%x", sum), 4))
}

func numberOf(t testing.TB, value string) int {
	t.Helper()
	number, _, _ := strings.Cut(value, ":")
	n, err := strconv.Atoi(number)
	if err != nil || value != numbered(n) {
		t.Fatalf("a value is broken: %.40q", value)
	}
	return n
}
