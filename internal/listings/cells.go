package listings

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/flight"
	"hostr-daemon/internal/geocode"
	"hostr-daemon/internal/location"
)

const (
	// searchCellBudget is the most g values a search filter carries (spec 40 §4.1).
	searchCellBudget = 500
	// rememberedCovers bounds the covers kept in memory, about 15 kB each.
	rememberedCovers = 256
	// coverTimeout bounds one computation, in case an outline is monstrous.
	coverTimeout = 10 * time.Second
)

// Places finds the outline of a named place; equal look-ups under way are one.
type Places interface {
	Place(ctx context.Context, name string) (geocode.Place, error)
}

// Cells turns place names into the H3 cells of a search filter (spec 42 §3) and
// remembers them: the cover of a country costs far more than the search itself.
// Equal names under way share one computation. It is safe for concurrent use.
type Cells struct {
	places  Places
	running flight.Group[[]string]

	mu     sync.Mutex
	covers *simplelru.LRU[string, []string]
}

// NewCells returns an empty memory in front of places.
func NewCells(places Places) *Cells {
	covers, err := simplelru.NewLRU[string, []string](rememberedCovers, nil)
	if err != nil {
		panic(err) // only a size below 1 fails
	}
	return &Cells{places: places, covers: covers}
}

// Close ends what is being computed and waits for it; later calls of Of fail.
func (c *Cells) Close() { c.running.Close() }

// Of returns at most 500 cells, as decimal text, that cover the place; callers share
// the list and must not change it. No cell is a valid answer: a place too small to
// hold the centre of one. Errors are those of Places, and the cause of ctx.
func (c *Cells) Of(ctx context.Context, name string) ([]string, error) {
	key := strings.ToLower(strings.TrimSpace(name))
	if cells, ok := c.get(key); ok {
		return cells, nil
	}
	// The look-up is not part of the shared run: it ends when nobody waits for it.
	place, err := c.places.Place(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.running.Do(ctx, key, func(ctx context.Context) ([]string, error) {
		// An equal computation may have ended since the caller asked the memory.
		if cells, ok := c.get(key); ok {
			return cells, nil
		}
		cells, err := cover(ctx, place)
		if err == nil {
			c.put(key, cells)
		}
		return cells, err
	})
}

func cover(ctx context.Context, place geocode.Place) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, coverTimeout)
	defer cancel()
	cells, err := location.Cover(ctx, place.Geometry, searchCellBudget)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fault.New(fault.UnexpectedError, "The outline that the geocoder gives for %q is too intricate to search in: name a smaller place in it.", place.DisplayName)
	}
	if err != nil {
		return nil, fault.New(fault.UnexpectedError, "the outline of %q could not be covered with map cells: %w", place.DisplayName, err)
	}
	return cells, nil
}

func (c *Cells) get(key string) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.covers.Get(key)
}

func (c *Cells) put(key string, cells []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.covers.Add(key, cells)
}
