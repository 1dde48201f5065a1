package secrets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

func TestFileHasTheOldForm(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "state", "production")
	store := fileStore(PlainFile, folder)
	mustBeAbsent(t, store, "auth")
	if _, err := os.Stat(folder); err == nil {
		t.Error("a read created the folder")
	}
	mustWrite(t, store, "hostr-session/b/seed", `["b:<&>\u2028"]`)
	mustWrite(t, store, "auth", "[]")
	path := filepath.Join(folder, plainName)
	want := "{\n  \"auth\": \"[]\",\n  \"hostr-session/b/seed\": \"[\\\"b:<&>\\\\u2028\\\"]\"\n}"
	if got := readFile(t, path); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	checkMode(t, path, 0o600)
	checkMode(t, filepath.Join(folder, lockName), 0o600)
	checkMode(t, folder, 0o700)
	checkMode(t, filepath.Dir(folder), 0o700)
	if place := store.Place(); place != (Place{PlainFile, path}) {
		t.Errorf("place %v", place)
	}
	if err := store.Delete(testContext(t), "auth"); err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(testContext(t), "never stored"); err != nil {
		t.Fatal(err)
	}
	mustBeAbsent(t, store, "auth")
}

func checkMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %o, want %o", filepath.Base(path), got, want)
	}
}

func TestWhatIsUnknownIsKept(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, plainName)
	writeFile(t, path, "\xef\xbb\xbf"+`{"other":"kept","number":5.0,"list":[1,"\ud800"],"nothing":null,"auth":"old"}`, 0o600)
	store := fileStore(PlainFile, folder)
	for key, want := range map[string]string{"other": "kept", "number": "5.0", "list": `[1,"\ud800"]`} {
		if got := mustRead(t, store, key); got != want {
			t.Errorf("%s reads as %s, want %s", key, got, want)
		}
	}
	mustBeAbsent(t, store, "nothing")
	mustWrite(t, store, "auth", "new")
	want := `{
  "auth": "new",
  "list": [
    1,
    "\ud800"
  ],
  "nothing": null,
  "number": 5.0,
  "other": "kept"
}`
	if got := readFile(t, path); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	keys, err := store.Keys(testContext(t))
	if err != nil || strings.Join(keys, " ") != "auth list nothing number other" {
		t.Errorf("keys %v, %v", keys, err)
	}
}

func TestDamagedFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	for content, words := range map[string]string{
		"":                               "it is empty",
		" \n":                            "it is empty",
		`["canary"]`:                     "no JSON object",
		`"canary"`:                       "no JSON object",
		`null`:                           "no JSON object",
		`5`:                              "no JSON object",
		`{"auth":"canary"`:               "no JSON from byte 16 on",
		`{"auth":canary}`:                "no JSON from byte 9 on",
		`{"auth":"canary"} canary`:       "no JSON from byte 19 on",
		"{\"auth\":\"canary \xff\xfe\"}": "no UTF-8",
	} {
		folder := t.TempDir()
		path := filepath.Join(folder, plainName)
		writeFile(t, path, content, 0o600)
		store := fileStore(PlainFile, folder)
		_, _, err := store.Read(testContext(t), "auth")
		mustFail(t, err, "secrets file", path, words, "left as it is")
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v is not ErrDamaged", content, err)
		}
		mustFail(t, store.Write(testContext(t), "auth", "canary"), words)
		mustFail(t, store.Delete(testContext(t), "auth"), words)
		mustFail(t, store.Check(testContext(t)), words)
		_, err = store.Keys(testContext(t))
		mustFail(t, err, words)
		if got := readFile(t, path); got != content {
			t.Errorf("the file was changed from %q to %q", content, got)
		}
	}
}

func TestFileThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, plainName), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err := fileStore(PlainFile, folder).Read(testContext(t), "auth")
	mustFail(t, err, "no regular file", "permissions")

	taken := filepath.Join(t.TempDir(), "taken")
	writeFile(t, taken, "", 0o600)
	mustFail(t, fileStore(PlainFile, taken).Write(testContext(t), "auth", "canary"), "cannot be written")

	mustFail(t, fileStore(PlainFile, t.TempDir()).Write(testContext(t), "auth", "canary \xff"), "no UTF-8 text")
}

func TestOpenFilesAreClosedToOthers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, plainName)
	writeFile(t, path, `{"auth":"x"}`, 0o644)
	store := fileStore(PlainFile, folder)
	mustRead(t, store, "auth")
	checkMode(t, path, 0o600)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, store, "auth", "y")
	checkMode(t, path, 0o600)
}

func TestLeftoversOfAKilledWriterGo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	leftover := filepath.Join(folder, plainName+temporarySuffix)
	writeFile(t, leftover, `{"auth":"canary`, 0o600)
	store := fileStore(PlainFile, folder)
	mustBeAbsent(t, store, "auth")
	if err := store.Delete(testContext(t), "auth"); err != nil { // what a logout does
		t.Fatal(err)
	}
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
}

func TestSymbolicLinkIsFollowed(t *testing.T) {
	t.Parallel()
	folder, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "real.json")
	writeFile(t, elsewhere, `{"auth":"old"}`, 0o600)
	if err := os.Symlink(elsewhere, filepath.Join(folder, plainName)); err != nil {
		t.Fatal(err)
	}
	store := fileStore(PlainFile, folder)
	mustWrite(t, store, "auth", "new")
	if got := readFile(t, elsewhere); !strings.Contains(got, `"new"`) {
		t.Errorf("the file behind the link holds %s", got)
	}
	if info, err := os.Lstat(filepath.Join(folder, plainName)); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
}

// TestChangesOfOthersAreSeen writes in place, as the old daemon does, with the same
// length and time.
func TestChangesOfOthersAreSeen(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, plainName)
	store := fileStore(PlainFile, folder)
	mustWrite(t, store, "auth", "1")
	for n := range 20 {
		content := `{"auth":"` + strconv.Itoa(n%10) + `"}`
		writeFile(t, path, content, 0o600)
		if got := mustRead(t, store, "auth"); got != strconv.Itoa(n%10) {
			t.Fatalf("read %s after %s was written", got, content)
		}
	}
	// A file that has settled is read once, until it changes.
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	mustRead(t, store, "auth")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !store.backend.(*file).snapshot.shows(info) {
		t.Error("the settled file is not remembered")
	}
	mustWrite(t, fileStore(PlainFile, folder), "auth", "elsewhere")
	if got := mustRead(t, store, "auth"); got != "elsewhere" {
		t.Errorf("read %s after another store has written", got)
	}
}

func TestUpdatesOfOneProcess(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{PlainFile, EncryptedFile} {
		store := fileStore(kind, t.TempDir())
		ctx := testContext(t)
		var writers sync.WaitGroup
		for range 8 {
			writers.Go(func() {
				for range 10 {
					err := store.Update(ctx, "count", func(old string, _ bool) (string, bool, error) {
						count, _ := strconv.Atoi(old)
						return strconv.Itoa(count + 1), true, nil
					})
					if err != nil {
						t.Error(err)
					}
					if _, _, err := store.Read(ctx, "count"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
		if got := mustRead(t, store, "count"); got != "80" {
			t.Errorf("%s: counted %s, want 80", kind, got)
		}
	}
}

func TestUpdateThatFailsOrChangesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	store := fileStore(PlainFile, folder)
	mustWrite(t, store, "auth", "1")
	before, err := os.Stat(filepath.Join(folder, plainName))
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	err = store.Update(testContext(t), "auth", func(string, bool) (string, bool, error) { return "2", true, refused })
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	mustWrite(t, store, "auth", "1")
	after, err := os.Stat(filepath.Join(folder, plainName))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was written anew: %v", err)
	}
}

func TestLockOfAnotherProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	lock := flock.New(filepath.Join(folder, lockName))
	if locked, err := lock.TryLock(); err != nil || !locked {
		t.Fatal(locked, err)
	}
	defer lock.Close()
	store := fileStore(PlainFile, folder)
	mustBeAbsent(t, store, "auth") // reading needs no lock

	ctx, cancel := context.WithTimeout(testContext(t), 50*time.Millisecond)
	defer cancel()
	coded := mustFail(t, store.Write(ctx, "auth", "canary"), "held by another process")
	if !coded.Retryable {
		t.Error("the error is not retryable")
	}
	cancelled, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := store.Write(cancelled, "auth", "canary"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
