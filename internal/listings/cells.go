package listings

import (
	"context"
	"errors"
	"runtime"
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

// Places finds the outline of a named place and the position of an address; equal
// look-ups under way are one.
type Places interface {
	Place(ctx context.Context, name string) (geocode.Place, error)
	Point(ctx context.Context, address string) (geocode.Point, error)
}

// Cells turns place names into the H3 cells of a search filter (spec 42 §3) and
// remembers them: the cover of a country costs far more than the search itself. It
// also turns addresses into the cells of a listing (spec 42 §2). Equal names under
// way share one computation. It is safe for concurrent use.
type Cells struct {
	places  Places
	running flight.Group[[]string]
	// computing has room for as many computations as may run at once.
	computing chan struct{}

	mu     sync.Mutex
	covers *simplelru.LRU[string, []string]
}

// NewCells returns an empty memory in front of places.
func NewCells(places Places) *Cells {
	covers, err := simplelru.NewLRU[string, []string](rememberedCovers, nil)
	if err != nil {
		panic(err) // only a size below 1 fails
	}
	// Half the processors: whoever searches for monstrous outlines gets no more.
	return &Cells{places: places, covers: covers, computing: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
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
	place, err := c.places.Place(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.running.DoWhileWanted(ctx, key, func(ctx context.Context) ([]string, error) {
		select {
		case c.computing <- struct{}{}:
			defer func() { <-c.computing }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
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

// AtAddress returns the g values of a listing at the address, as decimal text: its
// cell at the finest resolution asked for, 15 when that is nil, and the cells around
// that one, finest first; of these the first maximum, unless that is nil (spec 42 §2,
// spec 40 §5.1). A blank address is an address_required at address. Other errors are
// those of Places, at address where the text is to blame, and the cause of ctx.
func (c *Cells) AtAddress(ctx context.Context, address string, finest, maximum *int) ([]string, error) {
	const path = "address"
	if strings.TrimSpace(address) == "" {
		return nil, fault.New(fault.AddressRequired, "The address is missing: give street, town and country of the place; it is not published.").At(path)
	}
	point, err := c.places.Point(ctx, address)
	if coded := (*fault.Error)(nil); errors.As(err, &coded) && coded.Code == fault.InvalidInput {
		return nil, coded.At(path)
	}
	if err != nil {
		return nil, err
	}
	resolution := location.FinestResolution
	if finest != nil {
		resolution = *finest
	}
	cells := location.PointCells(point.Latitude, point.Longitude, resolution, maximum)
	if len(cells) == 0 {
		return nil, fault.New(fault.UnexpectedError, "the position that the geocoder gives for the address has no map cell; try another spelling of it")
	}
	return cells, nil
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
