package sessions

import (
	"context"
	"sync"
	"time"

	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/market"
)

// sendLimit is how long the end of a session waits for messages that are being sent.
const sendLimit = 5 * time.Second

// begunSends are the messages that somebody is sending.
type begunSends struct {
	inbox *inbox.Service

	mu    sync.Mutex
	count int
	// ended is closed, and replaced by the next one, when none is left.
	ended chan struct{}
}

// send is inbox.Service.Send, which the end of the session waits for.
func (b *begunSends) send(ctx context.Context, draft market.MessageDraft) (inbox.Sent, error) {
	b.mu.Lock()
	if b.count == 0 {
		b.ended = make(chan struct{})
	}
	b.count++
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.count--; b.count == 0 {
			close(b.ended)
		}
	}()
	return b.inbox.Send(ctx, draft)
}

// wait returns once nothing is being sent, or after the limit.
func (b *begunSends) wait(limit time.Duration) {
	b.mu.Lock()
	busy, ended := b.count > 0, b.ended
	b.mu.Unlock()
	if !busy {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}
