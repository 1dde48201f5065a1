package daemon

import (
	"errors"
	"io"
	"sync"
)

// chunkSize is how many bytes of frames are gathered for one write. Longer frames
// are written by themselves.
const chunkSize = 64 << 10

// spareChunks is how many written chunks are kept for reuse.
const spareChunks = 4

// outbox holds the frames that wait for the output and writes them in order, in
// whole lines, from one goroutine. Adding never blocks. Frames are gathered in
// chunks, so that many small ones cost one write.
type outbox struct {
	out       io.Writer
	maxBytes  int
	maxFrames int

	mu sync.Mutex
	// chunks[head:] wait to be written.
	chunks []chunk
	head   int
	spares [][]byte
	// bytes and frames count what is not written yet, the chunk being written included.
	bytes, frames int
	closed        bool
	err           error
	// room is closed when a backlog has gone down; nil while there is none.
	room chan struct{}

	wake   chan struct{}
	failed chan struct{} // closed when a write has failed
	done   chan struct{} // closed when run has returned
}

// chunk is a number of whole frames.
type chunk struct {
	data   []byte
	frames int
}

func newOutbox(out io.Writer, maxBytes, maxFrames int) *outbox {
	return &outbox{
		out:       out,
		maxBytes:  maxBytes,
		maxFrames: maxFrames,
		wake:      make(chan struct{}, 1),
		failed:    make(chan struct{}),
		done:      make(chan struct{}),
	}
}

// add queues a frame, its line feed included. A frame longer than chunkSize is kept
// without a copy and must not be changed any more. Frames after close or a failed
// write are lost.
func (o *outbox) add(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.append(frame)
}

// offer is add, but refuses the frame while there is a backlog.
func (o *outbox) offer(frame []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.backlogged(len(frame)) {
		return false
	}
	o.append(frame)
	return true
}

// waitForRoom returns when the backlog has gone down to half its bound, or done is
// closed. Without a backlog it returns at once.
func (o *outbox) waitForRoom(done <-chan struct{}) {
	o.mu.Lock()
	if !o.backlogged(0) || o.err != nil {
		o.mu.Unlock()
		return
	}
	if o.room == nil {
		o.room = make(chan struct{})
	}
	room := o.room
	o.mu.Unlock()
	select {
	case <-room:
	case <-o.failed:
	case <-done:
	}
}

// close lets run return when all is written.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.signal()
}

// failure returns the error of the write that failed, once failed is closed.
func (o *outbox) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// run writes until close, or until a write fails.
func (o *outbox) run() {
	defer close(o.done)
	for range o.wake {
		for {
			next, ok, closed := o.take()
			if !ok {
				if closed {
					return
				}
				break
			}
			if err := writeAll(o.out, next.data); err != nil {
				o.fail(err)
				return
			}
			o.written(next)
		}
	}
}

func (o *outbox) backlogged(more int) bool {
	return o.bytes+more > o.maxBytes || o.frames >= o.maxFrames
}

func (o *outbox) append(frame []byte) {
	if o.closed || o.err != nil {
		return
	}
	last := len(o.chunks) - 1
	open := last >= o.head && cap(o.chunks[last].data) == chunkSize
	switch {
	case len(frame) > chunkSize:
		o.chunks = append(o.chunks, chunk{data: frame, frames: 1})
	case open && chunkSize-len(o.chunks[last].data) >= len(frame):
		o.chunks[last].data = append(o.chunks[last].data, frame...)
		o.chunks[last].frames++
	default:
		o.chunks = append(o.chunks, chunk{data: append(o.spare(), frame...), frames: 1})
	}
	o.bytes += len(frame)
	o.frames++
	if len(o.chunks)-o.head == 1 {
		o.signal()
	}
}

func (o *outbox) spare() []byte {
	if last := len(o.spares) - 1; last >= 0 {
		data := o.spares[last]
		o.spares = o.spares[:last]
		return data
	}
	return make([]byte, 0, chunkSize)
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) take() (next chunk, ok, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.head == len(o.chunks) {
		return chunk{}, false, o.closed
	}
	next = o.chunks[o.head]
	o.chunks[o.head] = chunk{}
	if o.head++; o.head == len(o.chunks) {
		o.chunks, o.head = o.chunks[:0], 0
	}
	return next, true, o.closed
}

func (o *outbox) written(c chunk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= len(c.data)
	o.frames -= c.frames
	if cap(c.data) == chunkSize && len(o.spares) < spareChunks {
		o.spares = append(o.spares, c.data[:0])
	}
	if o.room != nil && o.bytes <= o.maxBytes/2 && o.frames <= o.maxFrames/2 {
		close(o.room)
		o.room = nil
	}
}

func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
	o.chunks, o.head, o.spares = nil, 0, nil
	close(o.failed)
}

var errNothingWritten = errors.New("the output takes no more bytes")

// writeAll writes the data in as many writes as the output wants.
func writeAll(out io.Writer, data []byte) error {
	for len(data) > 0 {
		n, err := out.Write(data)
		if err != nil {
			return err
		}
		if n <= 0 {
			return errNothingWritten
		}
		data = data[n:]
	}
	return nil
}
