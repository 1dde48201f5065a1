package imagesource

import (
	"net/netip"
	"time"
)

// DecodeBase64InPieces decodes with pieces of so many characters, a multiple of four.
func DecodeBase64InPieces(text string, pieceSize int) ([]byte, error) {
	return decodeInPieces(text, make([]byte, pieceSize))
}

// TreatLoopbackAsPublic lets a test serve from this machine what the rule must take
// for the public web.
func (r *Reader) TreatLoopbackAsPublic() {
	r.refuses = func(address netip.Addr) bool { return !address.Unmap().IsLoopback() && isPrivate(address) }
}

// SetTimeout lets a test meet the limit of a download without waiting for it.
func (r *Reader) SetTimeout(timeout time.Duration) { r.timeout = timeout }

// IsPrivate is the rule for addresses.
var IsPrivate = isPrivate
