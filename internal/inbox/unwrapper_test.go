package inbox

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
)

// tries is a signer for an unwrapper: it notes what is tried, and answers as told.
type tries struct {
	mu      sync.Mutex
	tried   []string
	running int
	most    int
	answer  func(id string) (verdict, time.Duration)
}

func (s *tries) open(ctx context.Context, wrap *nostr.Event) verdict {
	s.mu.Lock()
	s.tried = append(s.tried, wrap.ID)
	s.running++
	s.most = max(s.most, s.running)
	result, takes := s.answer(wrap.ID)
	s.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		result = unanswered
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	return result
}

// take returns what was tried, and forgets it.
func (s *tries) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	tried := s.tried
	s.tried = nil
	return tried
}

// bubble runs an unwrapper of four slots in fake time.
func bubble(t *testing.T, answer func(id string) (verdict, time.Duration), test func(*unwrapper, *tries)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &tries{answer: answer}
		u := newUnwrapper(4, s.open)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			u.run(ctx)
		}()
		test(u, s)
		cancel()
		<-ended
	})
}

func wrapAt(id string, at nostr.Timestamp) *nostr.Event {
	return &nostr.Event{ID: id, CreatedAt: at, Content: "content"}
}

func isDone(u *unwrapper) bool {
	synctest.Wait()
	select {
	case <-u.historyDone:
		return true
	default:
		return false
	}
}

func TestNewestFirst(t *testing.T) {
	t.Parallel()
	answer := func(string) (verdict, time.Duration) { return opened, time.Second }
	bubble(t, answer, func(u *unwrapper, s *tries) {
		for i, id := range []string{"d", "c", "b", "a"} { // taken at once
			u.add(wrapAt(id, nostr.Timestamp(i)))
		}
		synctest.Wait()
		s.take()
		u.add(wrapAt("old", 1))
		u.add(wrapAt("new", 3))
		u.add(wrapAt("newer", 9))
		u.add(wrapAt("second new", 3))
		if u.isSettled() || isDone(u) {
			t.Error("nothing is left to do")
		}
		if !u.endHistory() || u.endHistory() {
			t.Error("the history ends not once")
		}
		u.add(wrapAt("live", 0))
		time.Sleep(time.Second)
		synctest.Wait()
		got := s.take()
		slices.Sort(got) // They start together.
		if diff := cmp.Diff([]string{"live", "new", "newer", "second new"}, got); diff != "" {
			t.Errorf("tried next (-want +got):\n%s", diff)
		}
		time.Sleep(2 * time.Second)
		if !isDone(u) || !u.isSettled() || s.most != 4 {
			t.Errorf("done %t, settled %t, %d at a time", isDone(u), u.isSettled(), s.most)
		}
	})
}

// A wrap that is never answered holds neither the history nor others.
func TestStubbornWrap(t *testing.T) {
	t.Parallel()
	answer := func(id string) (verdict, time.Duration) {
		if id == "stubborn" {
			return unanswered, signerLimit
		}
		return opened, time.Second
	}
	bubble(t, answer, func(u *unwrapper, s *tries) {
		u.add(wrapAt("stubborn", 100))
		for i := range 20 {
			u.add(wrapAt("good", nostr.Timestamp(i)))
		}
		u.endHistory()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if tried := len(s.take()); tried != 21 || isDone(u) {
			t.Errorf("%d tried, history done %t", tried, isDone(u))
		}
		time.Sleep(signerLimit)
		if !isDone(u) || u.isSettled() {
			t.Error("the history waits for ever, or has forgotten the wrap")
		}
		s.take()
		for range 60 {
			time.Sleep(time.Minute)
			u.add(wrapAt("live", 1))
			started := time.Now()
			eventuallyTried(t, s, "live")
			if waited := time.Since(started); waited > time.Second {
				t.Errorf("a live wrap waited %v", waited)
			}
		}
		stubborn := 0
		for _, id := range s.take() {
			if id == "stubborn" {
				stubborn++
			}
		}
		if stubborn > 12 {
			t.Errorf("asked %d times in an hour", stubborn)
		}
	})
}

// eventuallyTried waits, in fake time, until the wrap is tried.
func eventuallyTried(t *testing.T, s *tries, id string) {
	t.Helper()
	for range 1000 {
		synctest.Wait()
		s.mu.Lock()
		tried := slices.Contains(s.tried, id)
		if tried {
			s.tried = slices.DeleteFunc(s.tried, func(other string) bool { return other == id })
		}
		s.mu.Unlock()
		if tried {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s was never tried", id)
}

// A signer that is gone is asked seldom, and everything once it is back.
func TestSignerGone(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]struct {
		result verdict
		takes  time.Duration
		most   int // attempts in an hour
	}{
		"silent": {unanswered, signerLimit, 100},
		"absent": {absent, 0, 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var here bool
			answer := func(string) (verdict, time.Duration) {
				if here {
					return opened, time.Second
				}
				return gone.result, gone.takes
			}
			bubble(t, answer, func(u *unwrapper, s *tries) {
				for i := range 200 {
					u.add(wrapAt("wrap", nostr.Timestamp(i)))
				}
				u.endHistory()
				time.Sleep(time.Hour)
				if tried := len(s.take()); tried > gone.most || tried < 10 || isDone(u) {
					t.Errorf("%d attempts in an hour, history done %t", tried, isDone(u))
				}
				s.mu.Lock()
				here = true
				s.mu.Unlock()
				time.Sleep(pauseLongest + signerLimit + 60*time.Second)
				if !isDone(u) || !u.isSettled() {
					t.Error("messages are missing though the signer is back")
				}
			})
		})
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	var here bool
	answer := func(id string) (verdict, time.Duration) {
		if here {
			return opened, 0
		}
		return map[string]verdict{"refused": refused, "silent": unanswered, "absent": absent}[id], 0
	}
	for _, id := range []string{"refused", "silent", "absent"} {
		here = false
		bubble(t, answer, func(u *unwrapper, s *tries) {
			u.add(wrapAt(id, 1))
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			s.take()
			s.mu.Lock()
			here = true
			s.mu.Unlock()
			u.resume()
			synctest.Wait()
			if tried := s.take(); len(tried) != 1 || !u.isSettled() {
				t.Errorf("%s: tried %v, settled %t", id, tried, u.isSettled())
			}
		})
	}
}

// What the signer refuses is asked twice, and holds nothing.
func TestRefusedWrap(t *testing.T) {
	t.Parallel()
	answer := func(string) (verdict, time.Duration) { return refused, 0 }
	bubble(t, answer, func(u *unwrapper, s *tries) {
		u.add(wrapAt("refused", 1))
		u.endHistory()
		if !isDone(u) {
			t.Error("the history waits for what the signer refuses")
		}
		time.Sleep(24 * time.Hour)
		if tried := s.take(); len(tried) != maxRefusals || u.isSettled() {
			t.Errorf("tried %v, settled %t", tried, u.isSettled())
		}
		large := strings.Repeat("A", maxParked/4)
		for range 10 {
			u.add(&nostr.Event{ID: "large", Content: large})
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		u.mu.Lock()
		aside, parked, pending := u.aside, len(u.parked), u.pending
		u.mu.Unlock()
		if aside > maxParked || parked != 4 || pending != 0 {
			t.Errorf("%d bytes in %d wraps are kept, %d pending", aside, parked, pending)
		}
	})
}

// The relay is not read on while too much waits.
func TestBoundedWaiting(t *testing.T) {
	t.Parallel()
	answer := func(string) (verdict, time.Duration) { return opened, time.Second }
	bubble(t, answer, func(u *unwrapper, _ *tries) {
		large := strings.Repeat("A", maxPending/4)
		for range 4 {
			u.add(&nostr.Event{ID: "large", Content: large})
		}
		if !u.isFull() {
			t.Error("64 MiB wait and more is taken")
		}
		<-u.room
		if u.isFull() {
			t.Error("there is no room after an attempt")
		}
	})
}

func TestHeartbeatsAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		h := newHeartbeat(func(context.Context) {
			mu.Lock()
			at = append(at, time.Since(began))
			mu.Unlock()
			time.Sleep(time.Second)
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.run(ctx)
		}()
		h.request()
		time.Sleep(3 * time.Second)
		h.request() // at 3 s: published at 8 s
		time.Sleep(17 * time.Second)
		for range 40 { // from 20 s to 60 s without a pause: at 50 s, then 51 s + …
			h.request()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		h.request()
		time.Sleep(time.Second)
		cancel()
		<-ended
		mu.Lock()
		defer mu.Unlock()
		want := []time.Duration{8 * time.Second, 50 * time.Second, 64 * time.Second}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("published at (-want +got):\n%s", diff)
		}
	})
}
