package inbox

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

const (
	// maxPending bounds the wraps that wait for the signer, in bytes of their contents:
	// beyond it the relay is not read on.
	maxPending = 64 << 20
	// maxParked bounds the wraps that the signer refuses to decrypt, likewise.
	maxParked = 8 << 20
	// maxRefusals is how often the signer may say no to a wrap.
	maxRefusals = 2
	// patientFailures is after how many silences the history no longer waits for a wrap.
	patientFailures = 2
	// retryFirst and retryLongest pace the attempts at one wrap, stubbornLongest those
	// at one that stays unanswered while others are answered.
	retryFirst, retryLongest, stubbornLongest = 5 * time.Second, time.Minute, 10 * time.Minute
	// pauseFirst and pauseLongest pace the attempts at a signer that is not there.
	pauseFirst, pauseLongest = time.Second, 30 * time.Second
)

// verdict is how an attempt to open a wrap went.
type verdict int

const (
	// opened also stands for a wrap that nobody can open: it is done with.
	opened verdict = iota
	// refused means that the signer said no.
	refused
	// unanswered means that no answer came, or none that can be used.
	unanswered
	// absent means that there is no signer to ask; it says nothing of the wrap.
	absent
)

// unwrapper opens gift wraps, the newest first, a few at a time. What the signer does
// not answer is tried again later; what it refuses is put aside until resume.
//
// It knows wraps and verdicts. It must never know what is in a wrap.
type unwrapper struct {
	open  func(ctx context.Context, wrap *nostr.Event) verdict
	slots int
	wake  chan struct{}
	// room gets a signal when wraps may be added again.
	room chan struct{}
	// historyDone is closed once the history has ended and waits for no wrap.
	historyDone chan struct{}

	mu       sync.Mutex
	ready    jobHeap
	delayed  []*job
	parked   []*job
	running  int
	pending  int // bytes of the wraps that are ready, delayed or running
	aside    int // bytes of the parked ones
	arrivals int
	// holding counts the wraps that the history waits for.
	holding int
	ended   bool
	// answers counts the signer's, silence the attempts in a row that got none.
	answers, silence int
	pausedUntil      time.Time
}

// job is one wrap on its way.
type job struct {
	wrap    *nostr.Event
	arrival int
	// live is true for a wrap that came after the history.
	live  bool
	holds bool
	// failures and refusals count attempts that ended so.
	failures, refusals int
	due                time.Time
	// answersBefore is what the signer had answered when the attempt began.
	answersBefore int
	// stubborn is true once others were answered while this one waited in vain: it says
	// nothing of the signer any more.
	stubborn bool
}

func newUnwrapper(slots int, open func(context.Context, *nostr.Event) verdict) *unwrapper {
	return &unwrapper{
		open: open, slots: slots,
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1), historyDone: make(chan struct{}),
	}
}

// add takes a wrap; it also does so while isFull. A live one is tried at once, even
// where the signer seems gone.
func (u *unwrapper) add(wrap *nostr.Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.arrivals++
	added := &job{wrap: wrap, arrival: u.arrivals, live: u.ended, holds: !u.ended}
	if added.holds {
		u.holding++
	}
	if added.live {
		u.silence, u.pausedUntil = min(u.silence, u.slots-1), time.Time{}
	}
	u.pending += len(wrap.Content)
	heap.Push(&u.ready, added)
	signal(u.wake)
}

func (u *unwrapper) isFull() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pending >= maxPending
}

// endHistory tells that wraps added from now on are live ones; the first call counts,
// and is answered with true.
func (u *unwrapper) endHistory() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return false
	}
	u.ended = true
	u.checkHistory()
	return true
}

// isSettled reports whether no wrap is left to be tried again.
func (u *unwrapper) isSettled() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pending == 0 && u.aside == 0 && u.running == 0
}

// resume tries everything again at once: the signer is back.
func (u *unwrapper) resume() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, returned := range u.parked {
		returned.refusals = 0
		u.pending += len(returned.wrap.Content)
		heap.Push(&u.ready, returned)
	}
	u.parked, u.aside = nil, 0
	u.retry(func(*job) bool { return true })
	u.silence, u.pausedUntil = 0, time.Time{}
	signal(u.wake)
}

// run opens wraps until ctx ends, and waits for the attempts under way.
func (u *unwrapper) run(ctx context.Context) {
	var attempts sync.WaitGroup
	defer attempts.Wait()
	for {
		wait, waits := u.dispatch(func(next *job) {
			attempts.Go(func() { u.settle(ctx, next, u.open(ctx, next.wrap)) })
		})
		timer := time.NewTimer(wait)
		if !waits {
			timer.Stop()
		}
		select {
		case <-u.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// dispatch starts what can be started, and tells when to look again.
func (u *unwrapper) dispatch(start func(*job)) (wait time.Duration, waits bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	u.retry(func(late *job) bool { return !late.due.After(now) })
	for len(u.ready) > 0 && u.running < u.allowed() && !u.pausedUntil.After(now) {
		u.running++
		next := heap.Pop(&u.ready).(*job)
		next.answersBefore = u.answers
		start(next)
	}
	if u.pausedUntil.After(now) {
		return u.pausedUntil.Sub(now), true
	}
	if len(u.delayed) == 0 {
		return 0, false
	}
	next := slices.MinFunc(u.delayed, func(a, b *job) int { return a.due.Compare(b.due) })
	return next.due.Sub(now), true
}

// settle puts a wrap where its attempt has brought it.
func (u *unwrapper) settle(ctx context.Context, tried *job, result verdict) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.running--
	switch {
	case ctx.Err() != nil:
		return
	case result == opened:
		u.answered()
		u.leave(tried)
	case result == refused:
		u.answered()
		u.refuse(tried)
	case result == unanswered:
		u.postpone(tried)
	default: // absent
		heap.Push(&u.ready, tried)
		u.silent(u.slots)
	}
	signal(u.wake)
}

// The functions below expect the lock to be held.

// allowed is how many attempts may run: one, to find out, where the signer seems gone.
func (u *unwrapper) allowed() int {
	if u.silence >= u.slots {
		return 1
	}
	return u.slots
}

// answered notes that the signer is there: what its silence had delayed is tried again.
func (u *unwrapper) answered() {
	u.answers++
	if u.silence > 0 {
		u.retry(func(late *job) bool { return late.failures > 0 && !late.stubborn })
	}
	u.silence, u.pausedUntil = 0, time.Time{}
}

// silent notes an attempt without an answer, and makes a pause when the signer seems
// gone: when that was so in all slots in turn, or least says so.
func (u *unwrapper) silent(least int) {
	u.silence = max(u.silence+1, least)
	if u.silence >= u.slots {
		u.pausedUntil = time.Now().Add(doubled(pauseFirst, pauseLongest, u.silence-u.slots))
	}
}

// postpone puts an unanswered wrap off.
func (u *unwrapper) postpone(tried *job) {
	tried.failures++
	tried.stubborn = tried.stubborn || u.answers > tried.answersBefore
	longest := retryLongest
	if tried.stubborn {
		longest = stubbornLongest
	} else {
		u.silent(0)
	}
	u.delay(tried, doubled(retryFirst, longest, tried.failures-1))
	if tried.stubborn || tried.failures >= patientFailures {
		u.release(tried)
	}
}

// retry makes delayed wraps ready.
func (u *unwrapper) retry(which func(*job) bool) {
	u.delayed = slices.DeleteFunc(u.delayed, func(late *job) bool {
		if which(late) {
			heap.Push(&u.ready, late)
			return true
		}
		return false
	})
}

func (u *unwrapper) delay(late *job, by time.Duration) {
	late.due = time.Now().Add(by)
	u.delayed = append(u.delayed, late)
}

// refuse tries a refused wrap once more, and puts it aside then: each attempt may
// have to be declined by a person.
func (u *unwrapper) refuse(tried *job) {
	u.release(tried)
	if tried.refusals++; tried.refusals < maxRefusals {
		u.delay(tried, retryFirst)
		return
	}
	u.leave(tried)
	u.parked = append(u.parked, tried)
	u.aside += len(tried.wrap.Content)
	for u.aside > maxParked {
		u.aside -= len(u.parked[0].wrap.Content)
		u.parked = u.parked[1:]
	}
}

func (u *unwrapper) leave(done *job) {
	u.release(done)
	u.pending -= len(done.wrap.Content)
	signal(u.room)
}

// release lets the history go on without the wrap.
func (u *unwrapper) release(held *job) {
	if held.holds {
		held.holds = false
		u.holding--
		u.checkHistory()
	}
}

func (u *unwrapper) checkHistory() {
	if !u.ended || u.holding > 0 {
		return
	}
	select {
	case <-u.historyDone:
	default:
		close(u.historyDone)
	}
}

// doubled is first, doubled so many times, at most longest.
func doubled(first, longest time.Duration, times int) time.Duration {
	for range times {
		if first >= longest {
			break
		}
		first *= 2
	}
	return min(first, longest)
}

// signal leaves a token in a channel that holds one.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// jobHeap has live wraps first, then those with the newest date.
type jobHeap []*job

func (h jobHeap) Len() int { return len(h) }

func (h jobHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if a.live != b.live {
		return a.live
	}
	return cmp.Or(cmp.Compare(b.wrap.CreatedAt, a.wrap.CreatedAt), cmp.Compare(a.arrival, b.arrival)) < 0
}

func (h jobHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *jobHeap) Push(pushed any) { *h = append(*h, pushed.(*job)) }

// Pop implements heap.Interface.
func (h *jobHeap) Pop() any {
	last := len(*h) - 1
	popped := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return popped
}
