package profiles

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

const (
	// freshFor is how long a found profile is served without asking again.
	freshFor = 5 * time.Minute
	// rememberedProfiles bounds the profiles kept in memory.
	rememberedProfiles = 4096
	// absentFor is how long somebody without a profile counts as such (spec 60 §10.1).
	absentFor = time.Minute
	// rememberedAbsent bounds the people without profile that are remembered.
	rememberedAbsent = 4096
	// maxRememberedBytes is the size, content and tags, up to which a profile is kept:
	// a kind 0 may be as large as a relay's frame, and 4096 of those are too much.
	maxRememberedBytes = 64 << 10
)

// Cache remembers found profiles for the whole process, and for a while who has none. It
// is safe for concurrent use.
type Cache struct {
	now func() time.Time

	mu      sync.Mutex
	entries *simplelru.LRU[string, entry]
	// absent tells since when somebody counts as without profile.
	absent *simplelru.LRU[string, time.Time]
}

type entry struct {
	profile *market.Profile
	// at is when it was last seen on a relay.
	at time.Time
}

// NewCache returns an empty cache; now is the clock.
func NewCache(now func() time.Time) *Cache {
	return &Cache{now: now, entries: newLRU[entry](rememberedProfiles), absent: newLRU[time.Time](rememberedAbsent)}
}

func newLRU[T any](size int) *simplelru.LRU[string, T] {
	lru, err := simplelru.NewLRU[string, T](size, nil)
	if err != nil {
		panic(err) // only a size below 1 fails
	}
	return lru
}

// Put remembers that a profile was seen now, and returns the version to show: a newer
// one that is already known stays.
func (c *Cache) Put(profile *market.Profile) *market.Profile {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.absent.Remove(profile.PubKey)
	if known, ok := c.entries.Peek(profile.PubKey); ok && supersedes(known.profile, profile) {
		profile = known.profile
	}
	if size(profile.Event) <= maxRememberedBytes {
		c.entries.Add(profile.PubKey, entry{profile: profile, at: c.now()})
	}
	return profile
}

// get returns the profile known for the pubkey, nil when there is none. A fresh one
// need not be asked for again.
func (c *Cache) get(pubkey string) (known *market.Profile, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, ok := c.entries.Get(pubkey)
	if !ok {
		return nil, false
	}
	return held.profile, c.now().Sub(held.at) < freshFor
}

// putAbsent remembers that a search for a profile has found none now.
func (c *Cache) putAbsent(pubkey string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.absent.Add(pubkey, c.now())
}

func (c *Cache) isAbsent(pubkey string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, known := c.absent.Get(pubkey)
	return known && c.now().Sub(since) < absentFor
}

// supersedes tells whether a version of a profile replaces another one (NIP-01).
func supersedes(profile, known *market.Profile) bool {
	if profile.CreatedAt != known.CreatedAt {
		return profile.CreatedAt > known.CreatedAt
	}
	return profile.Event.ID < known.Event.ID
}

// size is about what the event holds in memory, in bytes.
func size(event *nostr.Event) int {
	size := len(event.Content)
	for _, tag := range event.Tags {
		for _, item := range tag {
			size += len(item)
		}
	}
	return size
}
