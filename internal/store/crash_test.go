package store

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// crashWriterVariable makes the test binary a writer to be killed; it holds the path.
const crashWriterVariable = "HOSTRD_TEST_CRASH_WRITER"

const keysPerRound = 7

// writeUntilKilled writes numbered rounds and prints each number once its rows are
// committed. A round is two rows in one transaction and some verified events.
func writeUntilKilled(path string) {
	ctx := context.Background()
	s, err := Open(ctx, path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	round, err := lastRound(ctx, s)
	if err == nil { // the last one may have been cut off before its events
		err = s.VerifiedEvents().Remember(ctx, roundKeys(round))
	}
	for round++; err == nil; round++ {
		err = s.write(ctx, "writing a round to", func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO operations (pubkey, namespace, id, data) VALUES ('p', 'n', ?, '{}')", round); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO config VALUES ('p', 'round', ?1) ON CONFLICT DO UPDATE SET value = ?1", round)
			return err
		})
		if err == nil {
			err = s.VerifiedEvents().Remember(ctx, roundKeys(round))
		}
		if err == nil {
			fmt.Println(round)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func roundKeys(round int) [][32]byte { return keys(round*keysPerRound, (round+1)*keysPerRound) }

func lastRound(ctx context.Context, s *Store) (round int, err error) {
	err = s.reader.QueryRowContext(ctx, "SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM config").Scan(&round)
	return round, err
}

// TestKilledWriterLosesNothing kills a writing process fifty times. The file must
// open clean each time, with every acknowledged row and no half transaction.
func TestKilledWriterLosesNothing(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	acknowledged := 0
	for range 50 {
		reached, err := runWriterAndKill(path, random.IntN(8), time.Duration(random.IntN(4000))*time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		acknowledged = max(acknowledged, reached)
		checkAfterCrash(t, path, acknowledged)
	}
	if acknowledged < 50 {
		t.Errorf("only %d rounds were written: the test proves little", acknowledged)
	}
}

// runWriterAndKill returns the last round the writer acknowledged.
func runWriterAndKill(path string, rounds int, after time.Duration) (last int, err error) {
	writer := exec.Command(os.Args[0])
	writer.Env = append(os.Environ(), crashWriterVariable+"="+path)
	writer.Stderr = os.Stderr
	stdout, err := writer.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := writer.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(stdout)
	for range rounds {
		if !lines.Scan() {
			return 0, errors.Join(errors.New("the writer ended by itself"), writer.Wait())
		}
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			return 0, err
		}
	}
	<-time.After(after) // somewhere in the middle of a round
	killed := writer.Process.Kill()
	for lines.Scan() { // what it acknowledged before it died
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			last = n
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
	_ = writer.Wait() // always an error: it was killed
	return last, killed
}

func checkAfterCrash(t *testing.T, path string, acknowledged int) {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var integrity string
	if err := s.reader.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&integrity); err != nil || integrity != "ok" {
		t.Fatalf("integrity: %s %v", integrity, err)
	}
	last, err := lastRound(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if operations := count(t, s.reader, "operations"); last < acknowledged || operations != last {
		t.Fatalf("round %d was acknowledged; there are round %d and %d operations", acknowledged, last, operations)
	}
	known, err := s.VerifiedEvents().Known(t.Context(), keys(keysPerRound, (acknowledged+1)*keysPerRound))
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range known {
		if !k {
			t.Fatalf("event %d of round %d is gone", i%keysPerRound, i/keysPerRound+1)
		}
	}
}
