package trades

import (
	"context"
	"sync"
)

// Turns let one caller per key go on at a time. The zero value is ready.
type Turns struct {
	mu    sync.Mutex
	taken map[string]chan struct{}
}

// take waits for the key's turn and returns what ends it, or the cause of ctx.
func (t *Turns) take(ctx context.Context, key string) (end func(), err error) {
	for {
		t.mu.Lock()
		ended, busy := t.taken[key]
		if !busy {
			mine := make(chan struct{})
			if t.taken == nil {
				t.taken = make(map[string]chan struct{})
			}
			t.taken[key] = mine
			t.mu.Unlock()
			return func() { t.end(key, mine) }, nil
		}
		t.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (t *Turns) end(key string, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.taken, key)
	close(mine)
}
