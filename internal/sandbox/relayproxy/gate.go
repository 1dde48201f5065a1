package relayproxy

import (
	"errors"
	"net"
	"sync"
)

// gate stops all bytes in both directions while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil while open, closed when it opens
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

// pass waits until the gate is open; false means that the connection was closed
// or the relay stopped first.
func (g *gate) pass(closed, stopped <-chan struct{}) bool {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if shut == nil {
			return true
		}
		select {
		case <-shut:
		case <-closed:
			return false
		case <-stopped:
			return false
		}
	}
}

// gatedListener hands out connections that pass the gate. admit decides about
// each new connection; a refused one is reset.
type gatedListener struct {
	net.Listener
	gate    *gate
	stopped <-chan struct{}
	admit   func() bool
}

// Accept implements net.Listener.
func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.admit() {
			return &gatedConn{
				Conn: connection, gate: l.gate, closed: make(chan struct{}), stopped: l.stopped,
			}, nil
		}
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = connection.Close()
	}
}

// gatedConn waits at the gate before a read returns and before a write begins.
type gatedConn struct {
	net.Conn
	gate    *gate
	closed  chan struct{}
	stopped <-chan struct{}
	once    sync.Once
	err     error
}

// Read implements net.Conn.
func (c *gatedConn) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	if !c.gate.pass(c.closed, c.stopped) {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn.
func (c *gatedConn) Write(data []byte) (int, error) {
	if !c.gate.pass(c.closed, c.stopped) {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(data)
}

// Close implements net.Conn.
func (c *gatedConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.err = c.Conn.Close()
	})
	if errors.Is(c.err, net.ErrClosed) {
		return nil
	}
	return c.err
}
