package store

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVerifiedEventsAreKnown(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := openStore(t, path)
	events := s.VerifiedEvents()
	check := func(ask [][32]byte, want []bool) {
		t.Helper()
		got, err := s.VerifiedEvents().Known(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check(nil, []bool{})
	check(keys(0, 2), []bool{false, false})
	if err := events.Remember(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := events.Remember(t.Context(), [][32]byte{key(2), key(1), key(2), {}}); err != nil {
		t.Fatal(err)
	}
	if err := events.Remember(t.Context(), keys(2, 3)); err != nil {
		t.Fatalf("again: %v", err)
	}
	check([][32]byte{key(3), key(2), key(1), key(0), key(2), {}}, []bool{false, true, true, false, true, true})

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path)
	check(keys(0, 4), []bool{false, true, true, false})
}

func TestVerifiedEventsBeyondOneStatement(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	many := keys(0, 2*keysPerStatement+10)
	if err := s.VerifiedEvents().Remember(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	ask := append(keys(1_000_000, 1_000_000+keysPerStatement-5), many...)
	known, err := s.VerifiedEvents().Known(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range known {
		if k != (i >= keysPerStatement-5) {
			t.Fatalf("key %d known: %v", i, k)
		}
	}
	if n := count(t, s.reader, "hostrd_verified_events"); n != len(many) {
		t.Errorf("%d rows", n)
	}
}

func TestOldestOfASliceIsForgotten(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	events := &VerifiedEvents{store: s, limit: 3 * slicesOfTable, keysPerSweep: 1000}
	in := func(slice, second byte, last byte) [32]byte { return [32]byte{0: slice, 1: second, 31: last} }
	edge := [32]byte(bytes.Repeat([]byte{0xff}, 32))
	edge[0] = 7
	old := [][32]byte{in(7, 0, 0), in(7, 0, 1), edge, in(7, 9, 1)}
	neighbours := [][32]byte{in(6, 0xff, 1), in(6, 0, 1), in(6, 0, 2), in(6, 0, 3), in(8, 0, 0), in(8, 0, 1), in(8, 0, 2), in(8, 0, 3)}
	remember := func(added ...[32]byte) {
		t.Helper()
		if err := events.Remember(t.Context(), added); err != nil {
			t.Fatal(err)
		}
	}
	remember(append([][32]byte{in(0, 0, 0)}, append(old, neighbours...)...)...) // sweeps slice 0
	execute(t, s.writer, "UPDATE hostrd_verified_events SET verified_at = verified_at - 1000")
	execute(t, s.writer, "UPDATE hostrd_verified_events SET verified_at = verified_at - 1000 WHERE key <> x'07ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'")
	remember(in(7, 5, 1), in(7, 5, 2)) // sweeps slice 7

	known, err := events.Known(t.Context(), append([][32]byte{in(7, 5, 1), in(7, 5, 2), edge}, neighbours...))
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range known {
		if !k {
			t.Errorf("key %d is forgotten", i)
		}
	}
	if n := count(t, s.reader, "hostrd_verified_events WHERE substr(key, 1, 1) = x'07'"); n != 3 {
		t.Errorf("%d rows in the slice", n)
	}
}

func TestVerifiedEventsStayBounded(t *testing.T) {
	t.Parallel()
	s := openStore(t, newPath(t))
	events := &VerifiedEvents{store: s, limit: 10 * slicesOfTable, keysPerSweep: 8}
	for from := 0; from < 12_000; from += 2000 {
		if err := events.Remember(t.Context(), keys(from, from+2000)); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, s.reader, "hostrd_verified_events"); n < 10*slicesOfTable || n > 3*10*slicesOfTable {
		t.Errorf("%d rows stay of 12,000 with a limit of %d", n, events.limit)
	}
}

func BenchmarkVerifiedEvents(b *testing.B) {
	for _, rows := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("Of%d", rows), func(b *testing.B) {
			s := openStore(b, newPath(b))
			events := s.VerifiedEvents()
			if err := events.Remember(b.Context(), keys(0, rows)); err != nil {
				b.Fatal(err)
			}
			for _, asked := range []int{32, 500} {
				b.Run(fmt.Sprintf("Known%d", asked), func(b *testing.B) {
					ask := keys(0, asked)
					for b.Loop() {
						if _, err := events.Known(b.Context(), ask); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			b.Run("Remember500", func(b *testing.B) {
				for round := 0; b.Loop(); round++ {
					b.StopTimer()
					added := keys(rows+round*500, rows+round*500+500)
					b.StartTimer()
					if err := events.Remember(b.Context(), added); err != nil {
						b.Fatal(err)
					}
					b.StopTimer() // the table keeps its size
					const forget = slots + "DELETE FROM hostrd_verified_events WHERE key IN (SELECT substr(?1, n * 32 + 1, 32) FROM slot)"
					if _, err := s.writer.ExecContext(b.Context(), forget, joined(added), len(added)); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			})
		})
	}
}
