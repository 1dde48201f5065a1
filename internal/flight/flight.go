// Package flight lets callers who want the same thing at the same time share one run
// of the work that gets it. A run belongs to its group: it goes on when its callers
// have given up, unless it is only done while wanted, and Close ends it and waits
// for it.
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

// run is one run of the work. value and err may be read once done is closed; what
// lies below them belongs to the group's lock.
type run[T any] struct {
	done  chan struct{}
	end   context.CancelFunc
	value T
	err   error

	// waiting counts the callers who wait; a run that is kept goes on without any.
	waiting int
	kept    bool
}

// Do joins the run of the key, or starts one, and returns its outcome; or the cause
// of ctx as soon as that ends. Work gets the values of the first caller's context
// and none of its ends: it needs a limit of its own. A panic in it is its error.
func (g *Group[T]) Do(ctx context.Context, key string, work func(context.Context) (T, error)) (T, error) {
	return g.wait(ctx, key, true, work)
}

// DoWhileWanted is Do for work that is of no use once nobody waits for it: its
// context ends when the last caller's does, whoever the first was, and the caller
// after that starts anew. A run that Do or Start has joined goes on.
func (g *Group[T]) DoWhileWanted(ctx context.Context, key string, work func(context.Context) (T, error)) (T, error) {
	return g.wait(ctx, key, false, work)
}

// Start starts a run of the key unless there is one, and waits for nothing.
func (g *Group[T]) Start(ctx context.Context, key string, work func(context.Context) (T, error)) {
	_, _ = g.join(ctx, key, true, work) // a closed group starts nothing
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

func (g *Group[T]) wait(ctx context.Context, key string, keep bool, work func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	joined, err := g.join(ctx, key, keep, work)
	if err != nil {
		return none, err
	}
	select {
	case <-joined.done:
		return joined.value, joined.err
	case <-ctx.Done():
		g.leave(key, joined)
		return none, context.Cause(ctx)
	}
}

func (g *Group[T]) join(ctx context.Context, key string, keep bool, work func(context.Context) (T, error)) (*run[T], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	joined, ok := g.running[key]
	if !ok {
		joined = g.start(ctx, key, work)
	}
	joined.waiting++
	joined.kept = joined.kept || keep
	return joined, nil
}

// start needs the lock.
func (g *Group[T]) start(ctx context.Context, key string, work func(context.Context) (T, error)) *run[T] {
	if g.running == nil {
		g.running = make(map[string]*run[T])
		g.lifetime, g.end = context.WithCancel(context.Background())
	}
	lifetime, end := context.WithCancel(g.lifetime)
	started := &run[T]{done: make(chan struct{}), end: end}
	g.running[key] = started
	values := withLifetime{Context: lifetime, values: ctx}
	g.work.Go(func() {
		defer end()
		started.value, started.err = contain(values, work)
		g.land(key, started)
	})
	return started
}

// leave ends the run when it is of no use any more.
func (g *Group[T]) leave(key string, left *run[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left.waiting--
	if left.waiting == 0 && !left.kept {
		left.end()
		g.forget(key, left)
	}
}

// land makes the outcome known.
func (g *Group[T]) land(key string, landed *run[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed && landed.err != nil {
		landed.err = ErrClosed
	}
	g.forget(key, landed)
	close(landed.done)
}

// forget needs the lock.
func (g *Group[T]) forget(key string, forgotten *run[T]) {
	if g.running[key] == forgotten {
		delete(g.running, key)
	}
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
