package relaylists

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/relay"
)

const (
	// freshFor is how long what was learned is served without asking again.
	freshFor = 5 * time.Minute
	// retryAfter is how long an answer that found nothing, but was cut off, is left
	// alone: a dead relay must not cost every caller its whole wait.
	retryAfter = 30 * time.Second
	// rememberedLists bounds the lists kept in memory, at most some 10 KiB each.
	rememberedLists = 4096
)

// Cache remembers relay lists for the whole process, and who has none. It is safe
// for concurrent use.
type Cache struct {
	now func() time.Time

	mu      sync.Mutex
	entries *simplelru.LRU[string, entry]
}

// entry is what is known of one pubkey. The zero version stands for no list.
type entry struct {
	list    List
	version version
	// until is when to ask again.
	until time.Time
}

// version tells which of two events replaces the other (NIP-01).
type version struct {
	createdAt nostr.Timestamp
	id        string
}

// NewCache returns an empty cache; now is the clock.
func NewCache(now func() time.Time) *Cache {
	entries, err := simplelru.NewLRU[string, entry](rememberedLists, nil)
	if err != nil {
		panic(err) // only a size below 1 fails
	}
	return &Cache{now: now, entries: entries}
}

// known returns the list of a pubkey, empty when none is known.
func (c *Cache) known(pubkey string) List {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, _ := c.entries.Get(pubkey)
	return held.list
}

// fresh returns what was learned of a pubkey lately, and whether anything was.
func (c *Cache) fresh(pubkey string) (List, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, ok := c.entries.Get(pubkey)
	return held.list, ok && c.now().Before(held.until)
}

// learn takes the answer to a look-up in and returns the list that holds from now
// on. That nobody has one is only believed when every relay says so.
func (c *Cache) learn(pubkey string, answer relay.Answer) List {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, _ := c.entries.Peek(pubkey)
	held.until = c.now().Add(freshFor)
	newest := relay.Newest(answer.Events)
	switch {
	case len(newest) > 0:
		found := version{newest[0].CreatedAt, newest[0].ID}
		if found.replaces(held.version) {
			held.list, held.version = parse(newest[0].Tags), found
		}
	case answer.Complete:
		held.list, held.version = List{}, version{}
	default:
		held.until = c.now().Add(retryAfter)
	}
	c.entries.Add(pubkey, held)
	return held.list
}

func (v version) replaces(held version) bool {
	if held.id == "" || v.createdAt != held.createdAt {
		return held.id == "" || v.createdAt > held.createdAt
	}
	return v.id < held.id
}
