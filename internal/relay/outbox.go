package relay

import "sync"

// outbox is the queue in front of a socket's writer.
type outbox struct {
	filled chan struct{}
	mu     sync.Mutex
	frames [][]byte
	size   int
}

func newOutbox() *outbox { return &outbox{filled: make(chan struct{}, 1)} }

// push returns false when the peer has left too much unread. It never waits.
func (o *outbox) push(frame []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size > 0 && o.size+len(frame) > maxUnwritten {
		return false
	}
	o.frames, o.size = append(o.frames, frame), o.size+len(frame)
	select {
	case o.filled <- struct{}{}:
	default:
	}
	return true
}

func (o *outbox) take() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames := o.frames
	o.frames, o.size = nil, 0
	return frames
}
