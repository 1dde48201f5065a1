// Package loopback runs an HTTP handler on a port of this machine that nobody
// outside can reach, and ends it with all its requests. It knows nothing of what
// is served.
package loopback

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Server is a running HTTP server.
type Server struct {
	url     string
	http    *http.Server
	served  chan struct{}
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // requests
}

// Serve listens on the port of 127.0.0.1 (0: a free one) and serves handler.
func Serve(port int, handler http.Handler, logger zerolog.Logger) (*Server, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	server := &Server{url: "http://" + listener.Addr().String(), served: make(chan struct{})}
	server.http = &http.Server{
		Handler:           server.counting(handler),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(logger, "", 0),
	}
	go func() {
		defer close(server.served)
		_ = server.http.Serve(listener)
	}()
	return server, nil
}

// URL returns the address, such as http://127.0.0.1:40000, without a slash at
// the end.
func (s *Server) URL() string { return s.url }

// Close cuts all connections and waits until every request has ended.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.http.Close()
	<-s.served
	s.running.Wait()
	return err
}

func (s *Server) counting(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return
		}
		s.running.Add(1)
		s.mu.Unlock()
		defer s.running.Done()
		handler.ServeHTTP(w, request)
	})
}
