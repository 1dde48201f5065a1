// Package flight lets callers who want the same thing at the same time share one run
// of the work that gets it. A run belongs to its group: it goes on when its callers
// have given up, and Close ends it and waits for it.
//
// It knows keys, contexts and outcomes. It must never know what the work does, and
// it remembers nothing: the caller after the last one starts anew.
package flight

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrClosed is returned by every call on a group that is closed, also by those under
// way.
var ErrClosed = errors.New("closed while it was being waited for")

// Group runs work, each key once at a time. The zero value is ready; it must not be
// copied after first use.
type Group[T any] struct {
	mu       sync.Mutex
	lifetime context.Context // nil before the first run
	end      context.CancelFunc
	closed   bool
	running  map[string]*run[T]
	work     sync.WaitGroup
}

// run is one run of the work. value and err may be read once done is closed.
type run[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// Do joins the run of the key, or starts one, and returns its outcome; or the cause
// of ctx as soon as that ends. Work gets the values of the first caller's context
// and none of its ends: it needs a limit of its own. A panic in it is its error.
func (g *Group[T]) Do(ctx context.Context, key string, work func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	joined, err := g.join(ctx, key, work)
	if err != nil {
		return none, err
	}
	select {
	case <-joined.done:
		return joined.value, joined.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// Start starts a run of the key unless there is one, and waits for nothing.
func (g *Group[T]) Start(ctx context.Context, key string, work func(context.Context) (T, error)) {
	_, _ = g.join(ctx, key, work) // a closed group starts nothing
}

// Close cancels all runs and waits for their end.
func (g *Group[T]) Close() {
	g.mu.Lock()
	g.closed = true
	if g.end != nil {
		g.end()
	}
	g.mu.Unlock()
	g.work.Wait()
}

func (g *Group[T]) join(ctx context.Context, key string, work func(context.Context) (T, error)) (*run[T], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	if joined, ok := g.running[key]; ok {
		return joined, nil
	}
	if g.running == nil {
		g.running = make(map[string]*run[T])
		g.lifetime, g.end = context.WithCancel(context.Background())
	}
	started := &run[T]{done: make(chan struct{})}
	g.running[key] = started
	values := withLifetime{Context: g.lifetime, values: ctx}
	g.work.Go(func() {
		started.value, started.err = contain(values, work)
		g.land(key, started)
	})
	return started, nil
}

// land makes the outcome known.
func (g *Group[T]) land(key string, landed *run[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed && landed.err != nil {
		landed.err = ErrClosed
	}
	delete(g.running, key)
	close(landed.done)
}

// withLifetime ends with the group and has the values of a caller's context.
type withLifetime struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c withLifetime) Value(key any) any {
	if value := c.Context.Value(key); value != nil {
		return value
	}
	return c.values.Value(key)
}

// contain turns a panic into an error: no caller's recover covers the run's
// goroutine. Its text may hold what the work works on, so it is not repeated.
func contain[T any](ctx context.Context, work func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("the work failed unexpectedly (%T)", failure)
		}
	}()
	return work(ctx)
}
