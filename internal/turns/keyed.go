// Package turns lets callers of the same thing go one after another: edits of one
// listing, reservations of one account.
//
// It must never know what a key stands for.
package turns

import (
	"context"
	"sync"
)

// Keyed lets one caller per key go on at a time. The zero value is ready, and safe for
// concurrent use.
type Keyed struct {
	mu    sync.Mutex
	taken map[string]chan struct{}
}

// Take waits for the key's turn and returns what ends it, to be called once, or the
// cause of ctx. Those who wait go on in no particular order.
func (k *Keyed) Take(ctx context.Context, key string) (end func(), err error) {
	for {
		k.mu.Lock()
		ended, busy := k.taken[key]
		if !busy {
			mine := make(chan struct{})
			if k.taken == nil {
				k.taken = make(map[string]chan struct{})
			}
			k.taken[key] = mine
			k.mu.Unlock()
			return func() { k.end(key, mine) }, nil
		}
		k.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (k *Keyed) end(key string, mine chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.taken, key)
	close(mine)
}
