package media

import (
	"slices"
	"sync"

	"hostr-daemon/internal/fault"
)

// What images may take up while they are read and uploaded, copies included.
const (
	// listingBytes is the most for the images of one listing.
	listingBytes = 128 << 20
	// memoryBytes is the most for all listings under way in the process.
	memoryBytes = 256 << 20
	// largeBytes is from when on it is worth the while to give memory back to the system
	// at once: a heap that grew stays for minutes.
	largeBytes = 32 << 20
)

// wholeList is the input property of all images.
const wholeList = "images"

// memory counts the bytes of the images under way. The zero value is not usable.
type memory struct {
	perListing, total, large int64
	// free gives what is not in use any more back to the system. It takes as long as a
	// garbage collection.
	free func()

	mu   sync.Mutex
	used int64
	// grown is set while free is due.
	grown bool
	// calls are those under way, the oldest first.
	calls []*allowance
}

// open returns the allowance of one call; it must be released.
func (m *memory) open() *allowance {
	m.mu.Lock()
	defer m.mu.Unlock()
	opened := &allowance{memory: m}
	m.calls = append(m.calls, opened)
	return opened
}

// allowance is what one call has taken of the memory. Safe for concurrent use.
type allowance struct {
	memory *memory
	used   int64 // under the memory's lock
}

// take takes so many bytes more, or gives them back if the number is negative. The
// oldest call gets all that a listing may have, and the others leave it that: if all
// were refused alike, calls that come at once could keep each other from ever ending.
func (a *allowance) take(bytes int) error {
	m, size := a.memory, int64(bytes)
	m.mu.Lock()
	defer m.mu.Unlock()
	if size > 0 && a.used+size > m.perListing {
		return fault.New(fault.ImageTooLarge, "The images of the listing are larger than %d MiB together.", m.perListing>>20).At(wholeList).
			WithHint("Make the images smaller, or name fewer of them.")
	}
	if oldest := m.calls[0]; size > 0 && a != oldest && m.used+size > m.total-max(0, m.perListing-oldest.used) {
		return fault.New(fault.Busy, "Too many images are being uploaded at the moment: ask again.").At(wholeList).Transient()
	}
	a.add(size)
	return nil
}

// hold is take without a limit.
func (a *allowance) hold(bytes int) {
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	a.add(int64(bytes))
}

// add must be called under the memory's lock.
func (a *allowance) add(size int64) {
	a.used += size
	a.memory.used += size
	a.memory.grown = a.memory.grown || a.memory.used > a.memory.large
}

// release gives everything back. The last call of those that took much frees it.
func (a *allowance) release() {
	if a.end() {
		a.memory.free()
	}
}

// end reports whether to free.
func (a *allowance) end() bool {
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	a.add(-a.used)
	m.calls = slices.DeleteFunc(m.calls, func(call *allowance) bool { return call == a })
	due := m.grown && len(m.calls) == 0
	m.grown = m.grown && !due
	return due
}
