package signer

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// requestIDLength is the length of a request id, in letters and digits.
const requestIDLength = 16

// question is what a caller wants to know.
type question struct {
	method string
	params []string
	kind   *int
}

// request is a question under way, with all who wait for its answer.
type request struct {
	PendingRequest
	key     string
	content string // the JSON that is encrypted

	ctx    context.Context // ends with the request
	cancel context.CancelFunc
	// result and err are set before done is closed.
	done   chan struct{}
	result string
	err    error

	// The rest is guarded by the Remote's lock.

	finished     bool
	waiters      int
	announced    bool
	approvalPage bool
	deliveries   []delivery // one per link
}

// requestContent is the JSON of a request (NIP-46).
type requestContent struct {
	ID     string   `json:"id"`
	Method string   `json:"method"`
	Params []string `json:"params"`
}

// join returns the request for the question, begun if there is none.
func (r *Remote) join(asked question) (*request, error) {
	key := strings.Join(append([]string{asked.method}, asked.params...), "\x00")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if q := r.shared[key]; q != nil {
		q.waiters++
		return q, nil
	}
	q, err := r.newRequest(asked, key)
	if err != nil {
		return nil, err
	}
	r.byID[q.ID], r.shared[key] = q, q
	r.tasks.Go(func() { r.deliver(q) })
	return q, nil
}

func (r *Remote) newRequest(asked question, key string) (*request, error) {
	id, err := newRequestID(r.random)
	if err != nil {
		return nil, err
	}
	content, err := encodeJSON(requestContent{ID: id, Method: asked.method, Params: append([]string{}, asked.params...)})
	if err != nil {
		return nil, fmt.Errorf("writing a request for the signer: %w", err)
	}
	if len(content) > maxPlaintext {
		return nil, fmt.Errorf("%s is too large for a remote signer: the request has %d bytes, at most %d can be sent",
			asked.method, len(content), maxPlaintext)
	}
	q := &request{
		PendingRequest: PendingRequest{ID: id, Method: asked.method, EventKind: asked.kind},
		key:            key, content: content, done: make(chan struct{}),
		waiters: 1, deliveries: make([]delivery, len(r.links)),
	}
	q.ctx, q.cancel = context.WithCancel(r.ctx)
	return q, nil
}

// newRequestID returns random letters and digits; bytes that would make some of
// them likelier than others are left out.
func newRequestID(random io.Reader) (string, error) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	id := make([]byte, 0, requestIDLength)
	raw := make([]byte, requestIDLength)
	for len(id) < requestIDLength {
		if _, err := io.ReadFull(random, raw); err != nil {
			return "", fmt.Errorf("drawing a request id: %w", err)
		}
		for _, b := range raw {
			if int(b) < 256/len(alphabet)*len(alphabet) && len(id) < requestIDLength {
				id = append(id, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(id), nil
}

// leave ends the request when nobody waits for it any more.
func (r *Remote) leave(q *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.waiters--; q.waiters == 0 {
		r.remove(q)
	}
}

// remove forgets the request; an answer that still comes is unknown. The lock is held.
func (r *Remote) remove(q *request) {
	if r.byID[q.ID] == q {
		delete(r.byID, q.ID)
	}
	if r.shared[q.key] == q {
		delete(r.shared, q.key)
	}
	q.cancel()
}

// finish gives all callers the outcome, once.
func (r *Remote) finish(q *request, result string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.finished {
		return
	}
	q.finished, q.result, q.err = true, result, err
	r.remove(q)
	close(q.done)
}
