package geocode

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// rememberedPlaces is how many places a client remembers.
	rememberedPlaces = 256
	// rememberedPositions is how many positions their outlines may have together;
	// that is 16 MB.
	rememberedPositions = 1 << 20
)

// placeMemory remembers places found, without expiry. The oldest go first.
type placeMemory struct {
	maxPositions int

	mu        sync.Mutex
	places    *simplelru.LRU[string, Place]
	positions int
}

func newPlaceMemory(maxPlaces, maxPositions int) *placeMemory {
	memory := &placeMemory{maxPositions: maxPositions}
	forget := func(_ string, place Place) { memory.positions -= place.Geometry.Size() }
	places, err := simplelru.NewLRU(maxPlaces, forget)
	if err != nil {
		panic(err) // only for a size below one
	}
	memory.places = places
	return memory
}

func (m *placeMemory) get(key string) (Place, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Peek leaves the order as it is: by age, not by use.
	return m.places.Peek(key)
}

func (m *placeMemory) add(key string, place Place) {
	size := place.Geometry.Size()
	if size > m.maxPositions {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.places.Remove(key)
	for m.positions+size > m.maxPositions {
		m.places.RemoveOldest()
	}
	m.places.Add(key, place)
	m.positions += size
}
