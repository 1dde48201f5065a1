// Package httpfault puts fault switches and a memory of requests in front of an
// HTTP handler of the sandbox. It knows nothing of what the handler does.
package httpfault

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Faults says how a server misbehaves. The zero value is good health.
type Faults struct {
	// Times ends the faults after so many requests; 0: they last until Heal.
	Times int `json:"times,omitempty"`
	// Status answers with this HTTP status and an empty body.
	Status int `json:"status,omitempty"`
	// NotJSON answers with status 200 and a web page.
	NotJSON bool `json:"notJson,omitempty"`
	// HangUp cuts the connection instead of answering.
	HangUp bool `json:"hangUp,omitempty"`
	// DelayMillis holds each answer back for so many milliseconds.
	DelayMillis int `json:"delayMillis,omitempty"`
}

// Request is one request as it came in.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	Header http.Header
}

// maxRequests is how many requests are remembered; the oldest go first.
const maxRequests = 1024

// Switch is the handler with its faults. Safe for concurrent use.
type Switch struct {
	next     http.Handler
	mu       sync.Mutex
	faults   Faults
	requests []Request
}

// New returns a healthy switch in front of next.
func New(next http.Handler) *Switch { return &Switch{next: next} }

// Break sets the faults and replaces those set before.
func (s *Switch) Break(faults Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
}

// Heal ends all faults.
func (s *Switch) Heal() { s.Break(Faults{}) }

// Faults returns what is set now.
func (s *Switch) Faults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// Requests returns what has come in, oldest first, as far as it is remembered.
func (s *Switch) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP implements http.Handler.
func (s *Switch) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	faults := s.meet(request)
	if !wait(request.Context(), time.Duration(faults.DelayMillis)*time.Millisecond) {
		return
	}
	switch {
	case faults.HangUp:
		panic(http.ErrAbortHandler) // net/http cuts the connection without a word
	case faults.Status != 0:
		w.WriteHeader(faults.Status)
	case faults.NotJSON:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>Down for maintenance</title>"))
	default:
		s.next.ServeHTTP(w, request)
	}
}

func (s *Switch) meet(request *http.Request) Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == maxRequests {
		s.requests = slices.Delete(s.requests, 0, maxRequests/4)
	}
	s.requests = append(s.requests, Request{
		Method: request.Method,
		Path:   request.URL.Path,
		Query:  request.URL.Query(),
		Header: request.Header.Clone(),
	})
	faults := s.faults
	if faults.Times > 0 {
		s.faults.Times--
		if s.faults.Times == 0 {
			s.faults = Faults{}
		}
	}
	return faults
}

func wait(ctx context.Context, delay time.Duration) bool {
	if delay <= 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
