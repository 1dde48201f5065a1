package geocode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

var errClosed = errors.New("the geocoder client is closed")

// flights shares equal work in flight between its callers. Work goes on while one
// of them still waits for it, whoever started it. The zero value is ready.
type flights[T any] struct {
	mu      sync.Mutex
	running map[string]*flight[T]
	closed  bool
	done    sync.WaitGroup
}

type flight[T any] struct {
	landed  chan struct{}
	cancel  context.CancelFunc
	waiting int
	value   T
	err     error
}

// do returns what work returns, or the context's error as soon as it ends. Work
// gets the values of the first caller's context and a deadline of its own.
func (f *flights[T]) do(ctx context.Context, key string, timeout time.Duration, work func(context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	current, err := f.join(ctx, key, timeout, work)
	if err != nil {
		return none, err
	}
	select {
	case <-current.landed:
		return current.value, current.err
	case <-ctx.Done():
		f.leave(key, current)
		return none, ctx.Err()
	}
}

// close cancels all work and waits for its end.
func (f *flights[T]) close() {
	f.mu.Lock()
	f.closed = true
	for _, current := range f.running {
		current.cancel()
	}
	f.mu.Unlock()
	f.done.Wait()
}

func (f *flights[T]) join(ctx context.Context, key string, timeout time.Duration, work func(context.Context) (T, error)) (*flight[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if current, ok := f.running[key]; ok {
		current.waiting++
		return current, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	current := &flight[T]{landed: make(chan struct{}), cancel: cancel, waiting: 1}
	if f.running == nil {
		f.running = make(map[string]*flight[T])
	}
	f.running[key] = current
	f.done.Go(func() {
		defer cancel()
		current.value, current.err = contain(ctx, work)
		f.land(key, current)
	})
	return current, nil
}

// leave cancels the work when nobody waits for it any more; the next caller starts
// anew.
func (f *flights[T]) leave(key string, current *flight[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	current.waiting--
	if current.waiting == 0 {
		current.cancel()
		f.forget(key, current)
	}
}

// land makes the outcome known; later callers start anew.
func (f *flights[T]) land(key string, current *flight[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(key, current)
	close(current.landed)
}

func (f *flights[T]) forget(key string, current *flight[T]) {
	if f.running[key] == current {
		delete(f.running, key)
	}
}

// contain turns a panic into an error: the work runs on a goroutine that no
// caller's recover covers.
func contain[T any](ctx context.Context, work func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("the look-up failed unexpectedly: %v", failure)
		}
	}()
	return work(ctx)
}
