package media

import "time"

// DecodeBase64 decodes with the pieces of so many characters, a multiple of four.
func DecodeBase64(text string, pieceSize int) ([]byte, error) {
	return decodeInPieces(text, make([]byte, pieceSize))
}

// SetTimeout lets a test meet the limit of an upload without waiting for it.
func (s *Service) SetTimeout(timeout time.Duration) { s.timeout = timeout }
