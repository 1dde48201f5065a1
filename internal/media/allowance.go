package media

import (
	"sync/atomic"

	"hostr-daemon/internal/fault"
)

// What listing images may take up while they are read and uploaded.
const (
	// listingBytes is the most for the images of one listing.
	listingBytes = 128 << 20
	// memoryBytes is the most for all listings under way in the process.
	memoryBytes = 512 << 20
)

// wholeList is the input property of all images.
const wholeList = "images"

// memory counts the bytes of the images under way. The zero value is not usable.
type memory struct {
	perListing, total int64
	used              atomic.Int64
}

// open returns the allowance of one listing; it must be released.
func (m *memory) open() *allowance { return &allowance{memory: m} }

// allowance is what one listing has taken of the memory. Safe for concurrent use.
type allowance struct {
	memory *memory
	used   atomic.Int64
}

// take takes so many bytes more, or gives them back if the number is negative.
func (a *allowance) take(bytes int) error {
	size := int64(bytes)
	if a.used.Add(size) > a.memory.perListing {
		a.used.Add(-size)
		return fault.New(fault.ImageTooLarge, "The images of the listing are larger than %d MiB together.", a.memory.perListing>>20).At(wholeList).
			WithHint("Make the images smaller, or name fewer of them.")
	}
	if a.memory.used.Add(size) > a.memory.total {
		a.memory.used.Add(-size)
		a.used.Add(-size)
		return fault.New(fault.Busy, "Too many images are being uploaded at the moment: ask again.").At(wholeList).Transient()
	}
	return nil
}

// release gives everything back.
func (a *allowance) release() { a.memory.used.Add(-a.used.Swap(0)) }
