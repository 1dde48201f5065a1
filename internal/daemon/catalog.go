package daemon

import (
	"bytes"
	"encoding/json"
	"sync"

	"hostr-daemon/internal/redact"
)

// catalogText remembers the last raw result and what was made of it, so that a
// catalog of a hundred kilobytes is checked and redacted once and not for every
// describe. It is recognised by its bytes.
type catalogText struct {
	mu   sync.Mutex
	last *checkedText
}

// checkedText is JSON text with its form for frames and its form for the log.
type checkedText struct{ raw, safe, logged []byte }

func (c *catalogText) check(raw json.RawMessage, logLimit int) (*checkedText, error) {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last != nil && bytes.Equal(last.raw, raw) {
		return last, nil
	}
	safe, err := encodeObject(raw)
	if err != nil {
		return nil, err
	}
	checked := &checkedText{raw: bytes.Clone(raw), safe: safe, logged: redact.AppendJSON(nil, safe, logLimit)}
	c.mu.Lock()
	c.last = checked
	c.mu.Unlock()
	return checked, nil
}
