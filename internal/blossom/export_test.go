package blossom

import "time"

// SetServerTimeout lets a test meet the limit of one server without waiting for it.
func (c *Client) SetServerTimeout(limit time.Duration) { c.timeout = limit }

// ParseDescriptor is the reader of answers from outside.
var ParseDescriptor = parseDescriptor
