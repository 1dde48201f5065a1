package secrets

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// killsVariable sets how often the writer of a plain file is killed; 1000 takes about
// a minute.
const killsVariable = "HOSTR_TEST_KILLS"

const crashKeys = 10

func crashKey(n int) string { return fmt.Sprintf("hostr-session/%d/auth", n%crashKeys) }

// writeUntilKilled is the child: it writes one numbered value after another and
// acknowledges each one that Write has returned for.
func writeUntilKilled() int {
	store := fileStore(Kind(os.Getenv("KIND")), os.Getenv("FOLDER"))
	first, _ := strconv.Atoi(os.Getenv("FIRST"))
	for n := first; ; n++ {
		if err := store.Write(context.Background(), crashKey(n), numbered(n)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if _, err := fmt.Println(n); err != nil {
			return 1
		}
	}
}

func TestKilledWritersLoseNothing(t *testing.T) {
	t.Parallel()
	kills := 100
	if set, err := strconv.Atoi(os.Getenv(killsVariable)); err == nil {
		kills = set
	}
	for kind, times := range map[Kind]int{PlainFile: kills, EncryptedFile: kills / 4} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "test")
			acknowledged := make(map[string]int)
			next := 1
			for range times {
				next = killOnce(t, kind, folder, next, acknowledged)
				checkSurvived(t, kind, folder, acknowledged, next)
			}
			t.Logf("%d kills, %d writes acknowledged", times, next)
		})
	}
}

// killOnce runs a writer from a number on and kills it somewhere in its work. It
// returns the first number that the writer cannot have come to.
func killOnce(t *testing.T, kind Kind, folder string, first int, acknowledged map[string]int) int {
	t.Helper()
	command := child(t, "writer", "KIND="+string(kind), "FOLDER="+folder, "FIRST="+strconv.Itoa(first))
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	lives, last := rand.IntN(6), first-1
	for lines.Scan() {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		acknowledged[crashKey(last)] = last
		if last-first == lives {
			// Not always right after an acknowledgement: anywhere in the next write.
			time.AfterFunc(time.Duration(rand.IntN(1500))*time.Microsecond, func() { _ = command.Process.Kill() })
		}
	}
	if err := command.Wait(); err == nil || command.ProcessState.Exited() {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	return last + 2
}

func checkSurvived(t *testing.T, kind Kind, folder string, acknowledged map[string]int, next int) {
	t.Helper()
	if kind == PlainFile { // as another program reads it, before the store repairs anything
		var entries map[string]string
		if err := json.Unmarshal([]byte(readFile(t, filepath.Join(folder, plainName))), &entries); err != nil {
			t.Fatalf("the file does not parse: %v", err)
		}
	}
	store := fileStore(kind, folder)
	for key, last := range acknowledged {
		if got := numberOf(t, mustRead(t, store, key)); got < last || got >= next {
			t.Fatalf("%s holds write %d, acknowledged was %d", key, got, last)
		}
	}
}

// countUp is a child that adds one to a shared entry, and adds entries of its own.
func countUp() int {
	store := fileStore(Kind(os.Getenv("KIND")), os.Getenv("FOLDER"))
	for n := range 25 {
		err := store.Update(context.Background(), "shared", func(old string, _ bool) (string, bool, error) {
			count, _ := strconv.Atoi(old)
			return strconv.Itoa(count + 1), true, nil
		})
		if err == nil {
			err = store.Write(context.Background(), fmt.Sprintf("own/%s/%d", os.Getenv("NAME"), n), "kept")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func TestProcessesLoseNoUpdateToEachOther(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{PlainFile, EncryptedFile} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "test")
			const processes = 4
			var running []*exec.Cmd
			for i := range processes {
				command := child(t, "counter", "KIND="+string(kind), "FOLDER="+folder, "NAME="+strconv.Itoa(i))
				if err := command.Start(); err != nil {
					t.Fatal(err)
				}
				running = append(running, command)
			}
			for _, command := range running {
				if err := command.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			store := fileStore(kind, folder)
			if got := mustRead(t, store, "shared"); got != strconv.Itoa(processes*25) {
				t.Errorf("%s updates counted, want %d", got, processes*25)
			}
			keys, err := store.Keys(testContext(t))
			if err != nil || len(keys) != processes*25+1 {
				t.Errorf("%d entries, %v, want %d", len(keys), err, processes*25+1)
			}
		})
	}
}

// moveOnce is a child that opens the encrypted file, which moves the plain one in.
func moveOnce() int {
	store := fileStore(EncryptedFile, os.Getenv("FOLDER"))
	if _, _, err := store.Read(context.Background(), "none"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestKilledMoveLosesNothing(t *testing.T) {
	t.Parallel()
	for range 15 {
		folder := t.TempDir()
		plain := fileStore(PlainFile, folder)
		for n := range crashKeys {
			mustWrite(t, plain, crashKey(n), numbered(n))
		}
		command := child(t, "mover", "FOLDER="+folder)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		killer := time.AfterFunc(time.Duration(5000+rand.IntN(15000))*time.Microsecond, func() { _ = command.Process.Kill() })
		_ = command.Wait()
		killer.Stop()
		encrypted := fileStore(EncryptedFile, folder)
		for n := range crashKeys {
			if got := numberOf(t, mustRead(t, encrypted, crashKey(n))); got != n {
				t.Fatalf("%s holds %d", crashKey(n), got)
			}
		}
	}
}
