package media

import "time"

// SetTimeout lets a test meet the limit of an upload without waiting for it.
func (s *Service) SetTimeout(timeout time.Duration) { s.timeout = timeout }

// SetMemory sets the most bytes of the images of one listing, and of all of them.
func (s *Service) SetMemory(perListing, total int64) {
	s.memory.perListing, s.memory.total = perListing, total
}

// SetLarge sets how many bytes are much, and what frees them.
func (s *Service) SetLarge(bytes int64, free func()) { s.memory.large, s.memory.free = bytes, free }

// MemoryInUse is how many bytes of images are under way.
func (s *Service) MemoryInUse() int64 {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return s.memory.used
}
