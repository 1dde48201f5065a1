package inbox

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/store"
)

// Memory is where an account's message cache rests: store.MessageCache.
type Memory interface {
	Messages(ctx context.Context) ([]store.CachedMessage, error)
	Remember(ctx context.Context, messages []store.CachedMessage) error
	// Marks returns when the messages were last fetched to the end, and when that was
	// without a lower bound; zero times when never.
	Marks(ctx context.Context) (completed, full time.Time, err error)
	SetMarks(ctx context.Context, completed, full time.Time) error
	// Forget removes messages and marks.
	Forget(ctx context.Context) error
}

// Keys is where the key of that cache rests: with the account's secrets.
type Keys interface {
	// MessageCacheKey returns the key and makes one if there is none.
	MessageCacheKey(ctx context.Context) (key [32]byte, made bool, err error)
	DeleteMessageCacheKey(ctx context.Context) error
}

const (
	// loadLimit bounds reading the cache, flushLimit writing what is left of it at the
	// end.
	loadLimit, flushLimit = 30 * time.Second, 5 * time.Second
	// rowsPerWrite is how many messages one transaction takes.
	rowsPerWrite = 512
	// fullEvery is how often messages are fetched without a lower bound, backdated is
	// how far senders date wraps back, and skew what clocks may be wrong (spec 60 §6.2).
	fullEvery, backdated, skew = 7 * 24 * time.Hour, 48 * time.Hour, time.Hour
)

// cache keeps what the signer has decrypted, so that it is asked once per message in
// the life of a sign-in (spec 60 §11.1). It encrypts what leaves this process. A cache
// that cannot be used costs time, and is never an error.
type cache struct {
	memory  Memory
	keys    Keys
	account string
	random  io.Reader
	log     zerolog.Logger
	filled  chan struct{}

	mu   sync.Mutex
	seal cipher.AEAD // nil while nothing can be written
	rows []store.CachedMessage
	mark *marks
	// lossy is true once something could not be written: no mark may say that all was.
	lossy bool
}

type marks struct{ completed, full time.Time }

// recalled is what the cache knows.
type recalled struct {
	// rumors are the messages, newest first.
	rumors []market.Rumor
	// wraps are the ids of all wraps that need not be decrypted.
	wraps []string
	marks marks
}

// cachedRumor is the JSON that is encrypted.
type cachedRumor struct {
	Sender string          `json:"sender"`
	Rumor  json.RawMessage `json:"rumor"`
}

func newCache(config Config, account string) *cache {
	return &cache{
		memory: config.Memory, keys: config.Keys, account: account, random: config.Random, log: config.Logger,
		filled: make(chan struct{}, 1),
	}
}

// load reads the cache, and empties one that cannot be read.
func (c *cache) load(ctx context.Context) recalled {
	if c.memory == nil || c.keys == nil {
		return recalled{}
	}
	ctx, cancel := context.WithTimeout(ctx, loadLimit)
	defer cancel()
	found, err := c.read(ctx)
	if errors.Is(err, errUnreadable) {
		c.log.Warn().Str("event", "inbox.cache.reset").Str("reason", err.Error()).Send()
		found, err = recalled{}, c.reset(ctx)
	}
	if err != nil && ctx.Err() == nil {
		c.log.Warn().Str("event", "inbox.cache.unusable").Err(err).Send()
	}
	return found
}

var errUnreadable = errors.New("the message cache cannot be read")

// read opens all rows. errUnreadable means that the rows are of no use.
func (c *cache) read(ctx context.Context) (recalled, error) {
	made, err := c.openKey(ctx)
	if err != nil {
		return recalled{}, err
	}
	if made {
		return recalled{}, c.memory.Forget(ctx) // What another key has written.
	}
	rows, err := c.memory.Messages(ctx)
	if err != nil {
		return recalled{}, err
	}
	found, err := c.openRows(rows)
	if err != nil {
		return recalled{}, err
	}
	if len(rows) > 0 {
		found.marks.completed, found.marks.full, err = c.memory.Marks(ctx)
	}
	return found, err
}

// openKey makes writing possible.
func (c *cache) openKey(ctx context.Context) (made bool, err error) {
	key, made, err := c.keys.MessageCacheKey(ctx)
	if err != nil {
		return false, fmt.Errorf("the key of the message cache: %w", err)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return false, fmt.Errorf("the key of the message cache: %w", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return false, fmt.Errorf("the key of the message cache: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seal = seal
	return made, nil
}

// reset begins anew: the key goes first, so that a crash in between leaves only rows
// that nobody can read.
func (c *cache) reset(ctx context.Context) error {
	c.mu.Lock()
	c.seal = nil
	c.mu.Unlock()
	if err := c.keys.DeleteMessageCacheKey(ctx); err != nil {
		return err
	}
	if err := c.memory.Forget(ctx); err != nil {
		return err
	}
	_, err := c.openKey(ctx)
	return err
}

// openRows decrypts rows on all cores.
func (c *cache) openRows(rows []store.CachedMessage) (recalled, error) {
	rumors := make([]*market.Rumor, len(rows))
	problems := make([]error, runtime.GOMAXPROCS(0))
	var working sync.WaitGroup
	for worker := range problems {
		working.Go(func() {
			for i := worker; i < len(rows) && problems[worker] == nil; i += len(problems) {
				rumors[i], problems[worker] = c.openRow(rows[i])
			}
		})
	}
	working.Wait()
	if err := errors.Join(problems...); err != nil {
		return recalled{}, err
	}
	var found recalled
	for i, rumor := range rumors {
		found.wraps = append(found.wraps, rows[i].WrapID)
		if rumor != nil {
			found.rumors = append(found.rumors, *rumor)
		}
	}
	slices.SortFunc(found.rumors, func(a, b market.Rumor) int {
		return cmp.Or(cmp.Compare(b.Event.CreatedAt, a.Event.CreatedAt), cmp.Compare(a.Event.ID, b.Event.ID))
	})
	return found, nil
}

// openRow returns nil for a wrap that is only known, such as one nobody can decrypt.
func (c *cache) openRow(row store.CachedMessage) (rumor *market.Rumor, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%w: panic: %T", errUnreadable, problem)
		}
	}()
	if row.Data == nil {
		return nil, nil
	}
	size := c.seal.NonceSize()
	if len(row.Data) < size {
		return nil, fmt.Errorf("%w: a row is too short", errUnreadable)
	}
	text, err := c.seal.Open(nil, row.Data[:size], row.Data[size:], c.additional(row.WrapID))
	if err != nil {
		return nil, fmt.Errorf("%w: a row does not open", errUnreadable)
	}
	var content cachedRumor
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("%w: a row has another form", errUnreadable)
	}
	event, err := market.DecodeEmbeddedEvent(string(content.Rumor))
	if err != nil || event.PubKey != content.Sender {
		return nil, fmt.Errorf("%w: a row has another form", errUnreadable)
	}
	read, err := market.ReadRumor(event)
	if err != nil {
		return nil, nil // Written by a version that took more.
	}
	return &read, nil
}

// rumor remembers the message of a wrap.
func (c *cache) rumor(wrapID string, rumor *nostr.Event) {
	c.mu.Lock()
	seal := c.seal
	c.mu.Unlock()
	if seal == nil {
		return
	}
	text, err := json.Marshal(cachedRumor{rumor.PubKey, json.RawMessage(market.EncodeEmbeddedEvent(rumor))})
	nonce := make([]byte, seal.NonceSize(), seal.NonceSize()+len(text)+seal.Overhead())
	if err == nil {
		_, err = io.ReadFull(c.random, nonce)
	}
	if err != nil { // Its text may quote the message.
		c.log.Warn().Str("event", "inbox.cache.unwritten").Str("wrapId", wrapID).Send()
		c.lose()
		return
	}
	c.enqueue(store.CachedMessage{WrapID: wrapID, Data: seal.Seal(nonce, nonce, text, c.additional(wrapID))})
}

// undecryptable remembers a wrap that nobody can open.
func (c *cache) undecryptable(wrapID string) { c.enqueue(store.CachedMessage{WrapID: wrapID}) }

func (c *cache) additional(wrapID string) []byte { return []byte(c.account + ":" + wrapID) }

func (c *cache) enqueue(row store.CachedMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seal == nil {
		return
	}
	c.rows = append(c.rows, row)
	signal(c.filled)
}

// complete notes, behind all rows so far, that the messages were fetched to the end.
func (c *cache) complete(at marks) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark = &at
	signal(c.filled)
}

func (c *cache) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lossy = true
}

// run writes until ctx ends.
func (c *cache) run(ctx context.Context) {
	for {
		select {
		case <-c.filled:
			c.flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// finish writes what run has left.
func (c *cache) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	c.flush(ctx)
}

func (c *cache) flush(ctx context.Context) {
	for {
		rows, mark := c.take()
		if len(rows) == 0 && mark == nil {
			return
		}
		if err := c.write(ctx, rows, mark); err != nil {
			if c.keep(ctx, rows, mark) {
				return
			}
			c.log.Warn().Str("event", "inbox.cache.unwritten").Int("messages", len(rows)).Err(err).Send()
		}
	}
}

func (c *cache) write(ctx context.Context, rows []store.CachedMessage, mark *marks) error {
	if len(rows) > 0 {
		if err := c.memory.Remember(ctx, rows); err != nil {
			return err
		}
	}
	if mark == nil {
		return nil
	}
	return c.memory.SetMarks(ctx, mark.completed, mark.full)
}

// take returns rows for one transaction, and the mark once no rows are left behind.
func (c *cache) take() ([]store.CachedMessage, *marks) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seal == nil {
		c.rows, c.mark = nil, nil
	}
	if len(c.rows) > rowsPerWrite {
		rows := c.rows[:rowsPerWrite]
		c.rows = c.rows[rowsPerWrite:]
		return rows, nil
	}
	rows, mark := c.rows, c.mark
	c.rows, c.mark = nil, nil
	if c.lossy {
		mark = nil
	}
	return rows, mark
}

// keep puts back what was not written because the service is closing, for the last
// flush; other failures lose it, which costs a decryption later.
func (c *cache) keep(ctx context.Context, rows []store.CachedMessage, mark *marks) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !errors.Is(ctx.Err(), context.Canceled) {
		c.lossy = true
		return false
	}
	c.rows = slices.Concat(rows, c.rows)
	if c.mark == nil {
		c.mark = mark
	}
	return true
}

// since returns the lower bound for the dates of wraps to be fetched, nil for none.
func (r recalled) since(now time.Time) *nostr.Timestamp {
	completed, full := r.marks.completed, r.marks.full
	if completed.IsZero() || full.IsZero() || completed.After(now) || full.After(now) || now.Sub(full) > fullEvery {
		return nil
	}
	bound := nostr.Timestamp(completed.Add(-backdated - skew).Unix())
	return &bound
}
