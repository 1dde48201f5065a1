package turns_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hostr-daemon/internal/turns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func take(t testing.TB, keyed *turns.Keyed, key string) (end func()) {
	t.Helper()
	end, err := keyed.Take(patient(t), key)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// One caller per key goes on at a time: the race detector watches the counters.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	const callers = 50
	var keyed turns.Keyed
	counts := map[string]*int{"a": new(int), "b": new(int)}
	var calling sync.WaitGroup
	for key, count := range counts {
		for range callers {
			calling.Go(func() {
				end, err := keyed.Take(patient(t), key)
				if err != nil {
					t.Error(err)
					return
				}
				defer end()
				*count++
			})
		}
	}
	calling.Wait()
	for key, count := range counts {
		if *count != callers {
			t.Errorf("%s: %d callers came through, want %d", key, *count, callers)
		}
	}
}

func TestOtherKeysDoNotWait(t *testing.T) {
	t.Parallel()
	var keyed turns.Keyed
	end := take(t, &keyed, "a")
	take(t, &keyed, "b")()
	end()
	take(t, &keyed, "a")()
}

func TestWhoWaitsCanGiveUp(t *testing.T) {
	t.Parallel()
	var keyed turns.Keyed
	end := take(t, &keyed, "a")
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(patient(t))
	cancel(enough)
	if _, err := keyed.Take(ctx, "a"); !errors.Is(err, enough) {
		t.Errorf("%v, want the cause", err)
	}
	end()
	take(t, &keyed, "a")()
}
