package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
)

// Memory remembers verified events across restarts. A key is the SHA-256 of the
// 32 bytes of the id followed by the 64 bytes of the signature.
type Memory interface {
	// Known tells for each key whether it was remembered.
	Known(ctx context.Context, keys [][32]byte) ([]bool, error)
	Remember(ctx context.Context, keys [][32]byte) error
}

// Stats counts what a Verifier did since it was made.
type Stats struct {
	// Verified events had their signature checked and found good.
	Verified uint64
	// Remembered events were known to be good; only their id was recomputed.
	Remembered uint64
	// Refused events had a malformed field, a wrong id or a wrong signature.
	Refused uint64
	// Checking is the time signature checks took, added up over the workers.
	Checking time.Duration
}

// Verifier checks ids and signatures of events in a pool of workers, each
// signature once in the life of the event as far as the memory reaches. One
// serves the whole process.
type Verifier struct {
	memory Memory
	log    zerolog.Logger
	recent *lru.Cache[[32]byte, struct{}]

	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu       sync.Mutex
	work     *sync.Cond
	schedule []*sequence // round robin of sequences with unchecked events
	unsaved  [][32]byte
	closed   bool

	wakeSave chan struct{}
	// idle is closed when the workers are gone, saved when the last key was written.
	idle, saved chan struct{}

	verified, remembered, refused atomic.Uint64
	checking                      atomic.Int64
}

const (
	// verifyBatch is how many events a worker takes at a time: few enough that
	// subscriptions take turns, enough that a look-up in the memory pays.
	verifyBatch = 32
	// recentEvents bounds the memory in front of Memory, about 130 bytes each.
	recentEvents = 50_000
	// maxUnsaved bounds the keys waiting for a slow Memory; further ones are
	// verified again after a restart.
	maxUnsaved    = 100_000
	saveBatch     = 1_000
	memoryTimeout = 250 * time.Millisecond
)

// NewVerifier starts a pool with one worker per processor. memory may be nil.
func NewVerifier(memory Memory, log zerolog.Logger) *Verifier {
	recent, err := lru.New[[32]byte, struct{}](recentEvents)
	if err != nil {
		panic(err) // Only for a size below one.
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &Verifier{
		memory: memory, log: log, recent: recent, ctx: ctx, cancel: cancel,
		wakeSave: make(chan struct{}, 1), idle: make(chan struct{}), saved: make(chan struct{}),
	}
	v.work = sync.NewCond(&v.mu)
	for range runtime.GOMAXPROCS(0) {
		v.workers.Go(v.run)
	}
	go v.save()
	return v
}

// Stats returns the counts so far.
func (v *Verifier) Stats() Stats {
	return Stats{
		Verified: v.verified.Load(), Remembered: v.remembered.Load(), Refused: v.refused.Load(),
		Checking: time.Duration(v.checking.Load()),
	}
}

// Close ends the workers and gives the memory a quarter of a second to take what
// was verified last. Clients are closed before.
func (v *Verifier) Close() {
	v.mu.Lock()
	v.closed = true
	v.schedule = nil
	v.work.Broadcast()
	v.mu.Unlock()
	v.cancel()
	v.workers.Wait()
	close(v.idle)
	<-v.saved
}

// add puts a sequence with unchecked events at the end of the round.
func (v *Verifier) add(s *sequence) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.closed {
		v.schedule = append(v.schedule, s)
		v.work.Signal()
	}
}

func (v *Verifier) run() {
	for {
		s := v.next()
		if s == nil {
			return
		}
		batch, more := s.take(verifyBatch)
		if more {
			v.add(s) // Before the work, so that another worker can help.
		}
		v.check(batch)
		s.checked(batch)
	}
}

func (v *Verifier) next() *sequence {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.schedule) == 0 && !v.closed {
		v.work.Wait()
	}
	if v.closed {
		return nil
	}
	s := v.schedule[0]
	v.schedule = v.schedule[1:]
	return s
}

// check sets genuine on each good event of the batch.
func (v *Verifier) check(batch []*sequenced) {
	defer v.survive()
	unknown := make([]*sequenced, 0, len(batch))
	keys := make([][32]byte, 0, len(batch))
	for _, item := range batch {
		key, ok := checkForm(item.event)
		switch {
		case !ok:
			v.refused.Add(1)
		case v.isRecent(key):
			item.genuine = true
			v.remembered.Add(1)
		default:
			unknown, keys = append(unknown, item), append(keys, key)
		}
	}
	var fresh [][32]byte
	for at, known := range v.known(keys) {
		switch {
		case known || v.isRecent(keys[at]): // A copy may have come in the same batch.
			v.remembered.Add(1)
		case v.checkSignature(unknown[at].event):
			v.verified.Add(1)
			fresh = append(fresh, keys[at])
		default:
			v.refused.Add(1)
			continue
		}
		unknown[at].genuine = true
		v.recent.Add(keys[at], struct{}{})
	}
	v.remember(fresh)
}

func (v *Verifier) isRecent(key [32]byte) bool {
	_, ok := v.recent.Get(key)
	return ok
}

// known asks the memory; one that fails or is slow knows nothing.
func (v *Verifier) known(keys [][32]byte) []bool {
	if v.memory == nil || len(keys) == 0 {
		return make([]bool, len(keys))
	}
	ctx, cancel := context.WithTimeout(v.ctx, memoryTimeout)
	defer cancel()
	known, err := v.memory.Known(ctx, keys)
	if err != nil || len(known) != len(keys) {
		v.log.Warn().Err(err).Int("events", len(keys)).Msg("verified events could not be looked up; checking them again")
		return make([]bool, len(keys))
	}
	return known
}

// checkSignature expects an event that passed checkForm. A panic of the library
// counts as a wrong signature.
func (v *Verifier) checkSignature(event *nostr.Event) (good bool) {
	started := time.Now()
	defer v.survive()
	defer func() { v.checking.Add(int64(time.Since(started))) }()
	valid, err := event.CheckSignature()
	return valid && err == nil
}

// survive keeps the process alive when the library panics on bytes from outside.
// What the panic text holds is unknown, so only its type is logged.
func (v *Verifier) survive() {
	if problem := recover(); problem != nil {
		v.log.Error().Str("panic", fmt.Sprintf("%T", problem)).Msg("checking an event panicked; the event is refused")
	}
}

func (v *Verifier) remember(keys [][32]byte) {
	if v.memory == nil || len(keys) == 0 {
		return
	}
	v.mu.Lock()
	if len(v.unsaved) < maxUnsaved {
		v.unsaved = append(v.unsaved, keys...)
	}
	v.mu.Unlock()
	select {
	case v.wakeSave <- struct{}{}:
	default:
	}
}

// save hands verified keys to the memory; those that come meanwhile make up the
// next write.
func (v *Verifier) save() {
	defer close(v.saved)
	for {
		select {
		case <-v.wakeSave:
			v.saveAll(v.ctx)
		case <-v.idle:
			ctx, cancel := context.WithTimeout(context.Background(), memoryTimeout)
			defer cancel()
			v.saveAll(ctx)
			return
		}
	}
}

func (v *Verifier) saveAll(ctx context.Context) {
	for ctx.Err() == nil {
		v.mu.Lock()
		batch := v.unsaved[:min(len(v.unsaved), saveBatch)]
		v.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		if err := v.memory.Remember(ctx, batch); err != nil {
			if ctx.Err() != nil {
				return // Closing: the keys stay for the last write.
			}
			v.log.Warn().Err(err).Int("events", len(batch)).Msg("verified events could not be remembered; they will be checked again")
		}
		v.mu.Lock()
		v.unsaved = v.unsaved[len(batch):]
		v.mu.Unlock()
	}
}

// checkForm checks the lengths and digits of id, pubkey and signature and that
// the id is the hash of the event; the library does not look at the first two
// before it reads beyond a short key (spec 82 §10.5). It returns the key under
// which a verified event is remembered.
func checkForm(event *nostr.Event) (key [32]byte, ok bool) {
	if !isLowerHex(event.ID, 64) || !isLowerHex(event.PubKey, 64) || !isLowerHex(event.Sig, 128) || !event.CheckID() {
		return key, false
	}
	var idAndSignature [96]byte
	_, idError := hex.Decode(idAndSignature[:32], []byte(event.ID))
	_, signatureError := hex.Decode(idAndSignature[32:], []byte(event.Sig))
	return sha256.Sum256(idAndSignature[:]), idError == nil && signatureError == nil
}

func isLowerHex(text string, length int) bool {
	if len(text) != length {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
