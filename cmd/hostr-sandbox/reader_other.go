//go:build !unix

package main

import "os"

// watchReader does nothing here: that the reader is gone shows at the next write.
func watchReader(_ *os.File, _ func()) (end func()) { return func() {} }
