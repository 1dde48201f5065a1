package daemon

import (
	"slices"
	"sync"
)

// registry knows every request that has no answer yet, so that each can be
// cancelled, whether it runs or waits, and so that the end can wait for the last
// answer.
type registry struct {
	mu     sync.Mutex
	open   map[*call]struct{}
	byKey  map[string]*call
	closed bool
	// idle is closed when the last open call goes; nil while nobody waits for that.
	idle chan struct{}
}

func newRegistry() *registry {
	return &registry{open: make(map[*call]struct{}), byKey: make(map[string]*call)}
}

// add registers a call, and refuses it once the registry is closed. Calls of one
// key share one entry.
func (r *registry) add(c *call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.open[c] = struct{}{}
	if c.key != "" {
		c.twin = r.byKey[c.key]
		r.byKey[c.key] = c
	}
	return true
}

// remove forgets a call that has been answered.
func (r *registry) remove(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
	r.unlink(c)
	if len(r.open) == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

func (r *registry) unlink(c *call) {
	if c.key == "" {
		return
	}
	if r.byKey[c.key] == c {
		if c.twin == nil {
			delete(r.byKey, c.key)
		} else {
			r.byKey[c.key] = c.twin
		}
		return
	}
	for twin := r.byKey[c.key]; twin != nil; twin = twin.twin {
		if twin.twin == c {
			twin.twin = c.twin
			return
		}
	}
}

// find returns the open calls of a key in the order of their arrival.
func (r *registry) find(key []byte) []*call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*call
	for c := r.byKey[string(key)]; c != nil; c = c.twin {
		found = append(found, c)
	}
	slices.Reverse(found)
	return found
}

// all returns every open call.
func (r *registry) all() []*call {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := make([]*call, 0, len(r.open))
	for c := range r.open {
		calls = append(calls, c)
	}
	return calls
}

// close refuses further calls and returns a channel that is closed when none is
// open any more.
func (r *registry) close() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	if len(r.open) == 0 {
		close(idle)
		r.idle = nil
	}
	return idle
}
