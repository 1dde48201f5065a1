package secrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// carried are entries of every sort.
var carried = map[string]string{
	"auth":                      `["{\"secret\":\"canary\"}"]`,
	"hostr-session/aa/auth":     `["canary"]`,
	"hostr-session/aa/seed":     `["aa:canary1","bb:canary2"]`,
	"hostr-session/bridge/auth": `["canary","<&>ü"]`,
	"something/else":            "canary",
}

const carriedAccounts = 3

// testPlaces are all places, with a keyring on a fake command.
func testPlaces(t testing.TB) (places movables, folder string) {
	t.Helper()
	keyring, _ := fakeKeyring(t, "secret-tool")
	folder = filepath.Join(t.TempDir(), "test")
	return movables{
		PlainFile:     newPlainFile(filepath.Join(folder, plainName)),
		EncryptedFile: quickEncrypted(filepath.Join(folder, encryptedName), "", quickKey),
		Keyring:       keyring,
	}, folder
}

func fill(t testing.TB, place backend, entries map[string]string) {
	t.Helper()
	for key, value := range entries {
		mustWrite(t, &Store{place}, key, value)
	}
}

func mustHold(t testing.TB, place backend, entries map[string]string) {
	t.Helper()
	keys, err := place.keys(testContext(t))
	if want := slices.Sorted(maps.Keys(entries)); err != nil || !slices.Equal(keys, want) {
		t.Errorf("%v holds %q, %v, want %q", place.place(), keys, err, want)
	}
	for key, want := range entries {
		if got := mustRead(t, &Store{place}, key); got != want {
			t.Errorf("%v: %s holds %q, want %q", place.place(), key, got, want)
		}
	}
}

func TestMoveBetweenPlaces(t *testing.T) {
	t.Parallel()
	kinds := []Kind{PlainFile, EncryptedFile, Keyring}
	for _, from := range kinds {
		for _, to := range kinds {
			if from == to {
				continue
			}
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				t.Parallel()
				places, _ := testPlaces(t)
				fill(t, places[from], carried)
				moved, err := places.move(testContext(t), "", to)
				if err != nil || moved.Entries != len(carried) || moved.Accounts != carriedAccounts || moved.From.Kind != from || moved.To.Kind != to {
					t.Fatalf("moved %+v, %v", moved, err)
				}
				mustHold(t, places[to], carried)
				mustHold(t, places[from], nil)
				if path := places[from].place().Where; from != Keyring {
					if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s is still there: %v", path, err)
					}
				}
				if again, err := places.move(testContext(t), "", to); err != nil || again.Entries != 0 || again.From.Kind != "" {
					t.Errorf("moved once more: %+v, %v", again, err)
				}
			})
		}
	}
}

// TestMoveMerges has accounts in both places.
func TestMoveMerges(t *testing.T) {
	t.Parallel()
	places, _ := testPlaces(t)
	fill(t, places[PlainFile], map[string]string{
		"hostr-session/aa/seed": `["aa:11","cc:33"]`,
		"hostr-session/bb/nwc":  `["bb:x"]`,
	})
	fill(t, places[Keyring], map[string]string{
		"hostr-session/aa/seed": `["bb:22","cc:44"]`,
		"hostr-session/cc/nwc":  `["cc:y"]`,
	})
	if _, err := places.move(testContext(t), PlainFile, Keyring); err != nil {
		t.Fatal(err)
	}
	mustHold(t, places[PlainFile], nil)
	mustHold(t, places[Keyring], map[string]string{
		"hostr-session/aa/seed": `["aa:11","cc:33","bb:22"]`,
		"hostr-session/bb/nwc":  `["bb:x"]`,
		"hostr-session/cc/nwc":  `["cc:y"]`,
	})
}

// cut ends a move before one of its steps, as a kill would.
type cut struct{ steps, at int }

var errCut = errors.New("cut off")

func (c *cut) step() {
	if c.steps++; c.steps == c.at {
		panic(errCut)
	}
}

// cutPlace and cutTool count what a move does to a place.
type (
	cutPlace struct {
		movable
		cut *cut
	}
	cutTool struct {
		keyringTool
		cut *cut
	}
)

func (c cutPlace) entries(ctx context.Context) (document, error) {
	c.cut.step()
	return c.movable.entries(ctx)
}

func (c cutPlace) absorb(ctx context.Context, added document) error {
	c.cut.step()
	return c.movable.absorb(ctx, added)
}

func (c cutPlace) read(ctx context.Context, key string) (string, bool, error) {
	c.cut.step()
	return c.movable.read(ctx, key)
}

func (c cutPlace) discard(ctx context.Context, known document) error {
	c.cut.step()
	err := c.movable.discard(ctx, known)
	c.cut.step()
	return err
}

func (c cutTool) store(ctx context.Context, key, value string) error {
	c.cut.step()
	return c.keyringTool.store(ctx, key, value)
}

func (c cutTool) clear(ctx context.Context, key string) error {
	c.cut.step()
	return c.keyringTool.clear(ctx, key)
}

// counted returns a place whose steps count.
func counted(place movable, c *cut) movable {
	if ring, ok := place.(*keyring); ok {
		place = &keyring{tool: cutTool{ring.tool, c}, turn: make(chan struct{}, 1)}
	}
	return cutPlace{place, c}
}

// runCut reports whether the move was cut off.
func runCut(t *testing.T, source, target movable, at int) (wasCut bool) {
	t.Helper()
	c := &cut{at: at}
	defer func() {
		if problem := recover(); problem != nil {
			if problem != any(errCut) {
				panic(problem)
			}
			wasCut = true
		}
	}()
	if _, err := transfer(testContext(t), counted(source, c), counted(target, c)); err != nil {
		t.Fatal(err)
	}
	return false
}

// TestMoveCutOffAnywhere ends a move before each of its steps: nothing is lost, and the
// next move ends it.
func TestMoveCutOffAnywhere(t *testing.T) {
	t.Parallel()
	entries := map[string]string{"hostr-session/aa/auth": `["canary"]`, "hostr-session/aa/seed": `["aa:canary"]`}
	for _, direction := range [][2]Kind{{PlainFile, Keyring}, {Keyring, EncryptedFile}, {EncryptedFile, PlainFile}} {
		from, to := direction[0], direction[1]
		t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
			t.Parallel()
			for at := 1; ; at++ {
				places, _ := testPlaces(t)
				fill(t, places[from], entries)
				if !runCut(t, places[from], places[to], at) {
					if at < 6 {
						t.Errorf("the move has %d steps only", at)
					}
					return
				}
				for key, want := range entries {
					there, _, err := places[to].read(testContext(t), key)
					here, _, errHere := places[from].read(testContext(t), key)
					if err != nil || errHere != nil || here != want && there != want {
						t.Fatalf("cut before step %d: %s is lost: %v, %v", at, key, err, errHere)
					}
				}
				if _, err := places.move(testContext(t), "", to); err != nil {
					t.Fatalf("cut before step %d, then moved again: %v", at, err)
				}
				mustHold(t, places[from], nil)
				mustHold(t, places[to], entries)
			}
		})
	}
}

// carryOnce is a child that moves entries between the files of a folder.
func carryOnce() int {
	folder := os.Getenv("FOLDER")
	if _, err := filePlaces(folder).move(context.Background(), "", Kind(os.Getenv("TO"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func filePlaces(folder string) movables {
	return movables{
		PlainFile:     newPlainFile(filepath.Join(folder, plainName)),
		EncryptedFile: quickEncrypted(filepath.Join(folder, encryptedName), "", quickKey),
	}
}

// TestKilledCarrierLosesNothing kills the process that moves, somewhere in its work.
func TestKilledCarrierLosesNothing(t *testing.T) {
	t.Parallel()
	for i := range 16 {
		folder := t.TempDir()
		from, to := PlainFile, EncryptedFile
		if i%2 == 0 {
			from, to = to, from
		}
		fill(t, filePlaces(folder)[from], carried)
		command := child(t, "carrier", "FOLDER="+folder, "TO="+string(to))
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		killer := time.AfterFunc(time.Duration(3000+rand.IntN(15000))*time.Microsecond, func() { _ = command.Process.Kill() })
		_ = command.Wait()
		killer.Stop()
		if _, err := filePlaces(folder).move(testContext(t), "", to); err != nil {
			t.Fatal(err)
		}
		mustHold(t, filePlaces(folder)[to], carried)
		mustHold(t, filePlaces(folder)[from], nil)
	}
}

// restless is a place that another program changes each time it has been read, a
// number of times.
type restless struct {
	movable
	times int
}

func (r *restless) entries(ctx context.Context) (document, error) {
	entries, err := r.movable.entries(ctx)
	if r.times > 0 && err == nil {
		r.times--
		err = (&Store{r.movable}).Write(ctx, fmt.Sprintf("late/%d", r.times), "canary")
	}
	return entries, err
}

func TestMoveWhileTheSourceChanges(t *testing.T) {
	t.Parallel()
	places, _ := testPlaces(t)
	fill(t, places[PlainFile], carried)
	if _, err := transfer(testContext(t), &restless{places[PlainFile], 2}, places[EncryptedFile]); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(carried)
	want["late/0"], want["late/1"] = "canary", "canary"
	mustHold(t, places[EncryptedFile], want)

	places, _ = testPlaces(t)
	fill(t, places[PlainFile], carried)
	_, err := transfer(testContext(t), &restless{places[PlainFile], transferTries}, places[EncryptedFile])
	mustFail(t, err, "another program keeps changing them", plainName)
	for key := range carried {
		mustRead(t, &Store{places[PlainFile]}, key)
	}
}

// forgetful is a keyring that keeps something else than it was given.
type forgetful struct{ keyringTool }

func (f forgetful) store(ctx context.Context, key, value string) error {
	return f.keyringTool.store(ctx, key, value[:len(value)/2])
}

// TestMoveThatCannotEnd leaves the source as it was.
func TestMoveThatCannotEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		entries map[string]string
		spoil   func(ring *keyring, folder string)
		words   string
	}{
		"value too long": {
			map[string]string{"hostr-session/aa/auth": strings.Repeat("canary78", 1100)},
			func(*keyring, string) {}, "at most 8191 bytes",
		},
		"keyring that forgets": {
			carried, func(ring *keyring, _ string) { ring.tool = forgetful{ring.tool} }, "did not come back",
		},
		"locked keyring": {
			carried, func(_ *keyring, folder string) { behave(t, folder, "locked for writing") }, "locked",
		},
		"no keyring": {
			carried, func(_ *keyring, folder string) { behave(t, folder, "no service") }, "no place to keep private keys",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places, _ := testPlaces(t)
			ring, folder := fakeKeyring(t, "secret-tool")
			test.spoil(ring, folder)
			places[Keyring] = ring
			fill(t, places[PlainFile], test.entries)
			_, err := places.move(testContext(t), "", Keyring)
			mustFail(t, err, test.words)
			mustHold(t, places[PlainFile], test.entries)
		})
	}
}

func TestMoveNeedsToKnowFromWhere(t *testing.T) {
	t.Parallel()
	places, _ := testPlaces(t)
	fill(t, places[Keyring], map[string]string{"auth": `["canary"]`})
	fill(t, places[PlainFile], map[string]string{"hostr-session/aa/auth": `["canary"]`})
	_, err := places.move(testContext(t), "", EncryptedFile)
	mustFail(t, err, "several places", plainName, "keyring", "--from")
	if _, err := places.move(testContext(t), PlainFile, EncryptedFile); err != nil {
		t.Fatal(err)
	}
	if _, err := places.move(testContext(t), "", EncryptedFile); err != nil {
		t.Fatal(err)
	}
	mustHold(t, places[EncryptedFile], map[string]string{"auth": `["canary"]`, "hostr-session/aa/auth": `["canary"]`})
	_, err = places.move(testContext(t), EncryptedFile, EncryptedFile)
	mustFail(t, err, "cannot be moved")
}

func TestMoveNeedsTheKey(t *testing.T) {
	t.Parallel()
	options := testOptions(t, nil)
	_, err := Move(testContext(t), options, "", EncryptedFile)
	mustFail(t, err, "needs a key", keyVariable)
	_, encrypted := options.files()
	fill(t, newEncryptedFile(encrypted, "", quickKey), map[string]string{"auth": `["canary"]`})
	for _, from := range []Kind{"", EncryptedFile} {
		_, err = Move(testContext(t), options, from, PlainFile)
		mustFail(t, err, "no key was given to open it", encryptedName)
	}
	options = testOptions(t, map[string]string{keyVariable: quickKey.Reveal()})
	options.StateDir = filepath.Dir(filepath.Dir(encrypted))
	moved, err := Move(testContext(t), options, EncryptedFile, PlainFile)
	if err != nil || moved.Accounts != 1 {
		t.Fatalf("moved %+v, %v", moved, err)
	}
	plain, _ := options.files()
	mustHold(t, newPlainFile(plain), map[string]string{"auth": `["canary"]`})
}

// testOptions are those of a fresh state directory, with nothing but the variables.
func testOptions(t testing.TB, variables map[string]string) Options {
	t.Helper()
	return Options{StateDir: t.TempDir(), Environment: "test", Getenv: func(name string) string { return variables[name] }}
}

func TestAccountsElsewhere(t *testing.T) {
	t.Parallel()
	places, _ := testPlaces(t)
	fill(t, places[Keyring], carried)
	fill(t, places[PlainFile], map[string]string{"auth": `["canary"]`})
	found, err := unseen(testContext(t), &Store{places[PlainFile]}, places[Keyring], moveCommand("plain-file"))
	if err != nil || found == nil || found.Accounts != carriedAccounts-1 || found.Place.Kind != Keyring {
		t.Fatalf("found %+v, %v", found, err)
	}
	if told := found.String(); !strings.Contains(told, "2 stored sign-ins") || !strings.Contains(told, "move-secrets --to plain-file") || strings.Contains(told, "canary") {
		t.Errorf("told as %q", told)
	}
	if found, err = unseen(testContext(t), &Store{places[Keyring]}, places[PlainFile], ""); err != nil || found != nil {
		t.Errorf("where everything is seen: %+v, %v", found, err)
	}
	encrypted := testOptions(t, map[string]string{keyVariable: quickKey.Reveal()})
	if found, err := Elsewhere(testContext(t), encrypted); err != nil || found != nil {
		t.Errorf("beside an encrypted file: %+v, %v", found, err)
	}
}
