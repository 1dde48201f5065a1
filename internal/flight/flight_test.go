package flight_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"hostr-daemon/internal/flight"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should come at once.
const patience = 10 * time.Second

type valueKey struct{}

func TestEqualWorkIsSharedWhileItRuns(t *testing.T) {
	t.Parallel()
	var group flight.Group[int]
	defer group.Close()
	var runs atomic.Int32
	release := make(chan struct{})
	started := make(chan struct{}, 10)
	work := func(ctx context.Context) (int, error) {
		started <- struct{}{}
		receive(t, release)
		if ctx.Value(valueKey{}) != "of the first caller" {
			t.Error("the first caller's values are missing")
		}
		return int(runs.Add(1)), nil
	}
	ctx := context.WithValue(t.Context(), valueKey{}, "of the first caller")
	var callers sync.WaitGroup
	outcomes := make(chan int, 10)
	ask := func() {
		value, err := group.Do(ctx, "key", work)
		if err != nil {
			t.Error(err)
		}
		outcomes <- value
	}
	callers.Go(ask)
	receive(t, started)
	for range 9 {
		callers.Go(ask)
	}
	group.Start(ctx, "key", work)
	// Callers who come after the end start anew, so a late one may make a second run.
	close(release)
	callers.Wait()
	close(outcomes)
	first := 0
	for value := range outcomes {
		if value == 1 {
			first++
		}
	}
	if first == 0 {
		t.Error("nobody got the outcome of the first run")
	}
	if value, err := group.Do(ctx, "key", work); err != nil || value != int(runs.Load()) || value < 2 {
		t.Errorf("the caller after the last got %d, error %v", value, err)
	}
}

func TestKeysRunSideBySide(t *testing.T) {
	t.Parallel()
	var group flight.Group[string]
	defer group.Close()
	met := make(chan struct{})
	var callers sync.WaitGroup
	for _, key := range []string{"one", "other"} {
		callers.Go(func() {
			got, err := group.Do(t.Context(), key, func(context.Context) (string, error) {
				select {
				case met <- struct{}{}:
				case <-met:
				case <-time.After(patience):
					t.Error("the other key does not run")
				}
				return key, nil
			})
			if err != nil || got != key {
				t.Errorf("%s gave %q, error %v", key, got, err)
			}
		})
	}
	callers.Wait()
}

func TestARunOutlivesItsCallers(t *testing.T) {
	t.Parallel()
	var group flight.Group[int]
	defer group.Close()
	release, ended := make(chan struct{}), make(chan error, 1)
	started := make(chan struct{})
	gone := errors.New("the caller is gone")
	ctx, leave := context.WithCancelCause(t.Context())
	go func() {
		receive(t, started)
		leave(gone)
	}()
	_, err := group.Do(ctx, "key", func(ctx context.Context) (int, error) {
		close(started)
		receive(t, release)
		ended <- ctx.Err()
		return 0, nil
	})
	if !errors.Is(err, gone) {
		t.Errorf("the caller got %v", err)
	}
	close(release)
	if err := receive(t, ended); err != nil {
		t.Errorf("the run ended with its caller: %v", err)
	}
	if _, err := group.Do(ctx, "key", nil); !errors.Is(err, gone) {
		t.Errorf("a caller that is gone started a run: %v", err)
	}
}

// Whoever began a run may leave; it ends with the last who wait for it.
func TestAWantedRunEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group flight.Group[int]
		defer group.Close()
		var runs atomic.Int32
		work := func(ctx context.Context) (int, error) {
			if runs.Add(1) == 2 {
				return 2, nil
			}
			<-ctx.Done()
			return 1, context.Cause(ctx)
		}
		gone := errors.New("the caller is gone")
		outcomes := make(chan error, 2)
		ask := func() (leave context.CancelCauseFunc) {
			ctx, leave := context.WithCancelCause(t.Context())
			go func() {
				_, err := group.DoWhileWanted(ctx, "key", work)
				outcomes <- err
			}()
			synctest.Wait()
			return leave
		}
		first, second := ask(), ask()
		first(gone)
		if err := <-outcomes; !errors.Is(err, gone) {
			t.Errorf("the first caller got %v", err)
		}
		synctest.Wait()
		if runs.Load() != 1 || len(outcomes) != 0 {
			t.Errorf("%d runs, and the other caller got an outcome: %v", runs.Load(), len(outcomes) == 1)
		}
		second(gone)
		<-outcomes
		if value, err := group.DoWhileWanted(t.Context(), "key", work); value != 2 || err != nil {
			t.Errorf("the caller after the last got %d, error %v", value, err)
		}
	})
}

func TestAWantedRunIsKeptForWhoeverAskedToKeepIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group flight.Group[int]
		defer group.Close()
		release, ended := make(chan struct{}), make(chan error, 1)
		work := func(ctx context.Context) (int, error) {
			<-release
			ended <- ctx.Err()
			return 0, nil
		}
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = group.DoWhileWanted(ctx, "key", work) }()
		synctest.Wait()
		group.Start(ctx, "key", work)
		leave()
		synctest.Wait()
		close(release)
		if err := <-ended; err != nil {
			t.Errorf("the run ended with its caller: %v", err)
		}
	})
}

func TestCloseEndsRunsAndWaits(t *testing.T) {
	t.Parallel()
	var group flight.Group[int]
	started, outcome := make(chan struct{}), make(chan error, 1)
	var ended atomic.Bool
	go func() {
		_, err := group.Do(context.Background(), "key", func(ctx context.Context) (int, error) {
			close(started)
			<-ctx.Done()
			ended.Store(true)
			return 0, ctx.Err()
		})
		outcome <- err
	}()
	receive(t, started)
	group.Close()
	if !ended.Load() {
		t.Error("Close did not wait for the run")
	}
	if err := receive(t, outcome); !errors.Is(err, flight.ErrClosed) {
		t.Errorf("the caller got %v", err)
	}
	if _, err := group.Do(t.Context(), "key", nil); !errors.Is(err, flight.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	group.Start(t.Context(), "key", nil)
	group.Close()
}

func TestAPanicIsAnError(t *testing.T) {
	t.Parallel()
	var group flight.Group[int]
	defer group.Close()
	_, err := group.Do(t.Context(), "key", func(context.Context) (int, error) { panic("holds a secret") })
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error: %v", err)
	}
	if value, err := group.Do(t.Context(), "key", func(context.Context) (int, error) { return 5, nil }); value != 5 || err != nil {
		t.Errorf("after a panic: %d, %v", value, err)
	}
}

// receive waits for what should come at once. It may be called in any goroutine.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Error("nothing came")
		var none T
		return none
	}
}
