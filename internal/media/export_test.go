package media

import "time"

// SetTimeout lets a test meet the limit of an upload without waiting for it.
func (s *Service) SetTimeout(timeout time.Duration) { s.timeout = timeout }

// SetMemory sets the most bytes of the images of one listing, and of all of them.
func (s *Service) SetMemory(perListing, total int64) {
	s.memory.perListing, s.memory.total = perListing, total
}

// MemoryInUse is how many bytes of images are under way.
func (s *Service) MemoryInUse() int64 { return s.memory.used.Load() }
