package daemon

import (
	"bytes"
	"errors"
	"io"
)

// errLineTooLong is returned once for a line above the limit; the next line is
// read as usual.
var errLineTooLong = errors.New("the line is too long")

var byteOrderMark = []byte("\xef\xbb\xbf")

const (
	// readSize is how much is asked of the input at once, the size of a Linux pipe.
	readSize = 64 << 10
	// maxEmptyReads is how often the input may return nothing before it counts as
	// broken.
	maxEmptyReads = 100
)

// lineReader splits an input into lines at \n, \r\n and \r. Lines that fit its
// buffer cost no allocation; longer ones are collected in pieces and joined once,
// so that a line of any length allocates about twice its length in all, and no
// more than the buffer stays when it is done.
type lineReader struct {
	in    io.Reader
	limit int

	buffer []byte
	// buffer[start:end] is unread, and holds no terminator before scanned.
	start, scanned, end int
	// pieces hold the beginning of a line that is longer than the buffer.
	pieces    [][]byte
	collected int

	first    bool  // no line was returned yet
	afterCR  bool  // a \n that comes next belongs to the last line
	skipping bool  // the rest of the line is thrown away
	failure  error // of the input; what was read before still comes first
}

func newLineReader(in io.Reader, limit int) *lineReader {
	return &lineReader{in: in, limit: limit, buffer: make([]byte, readSize), first: true}
}

// next returns the next line without its terminator, and whether it may be kept; if
// not, it is valid until the following call. The last line needs no terminator.
// After it next returns the input's error, io.EOF as a rule.
func (r *lineReader) next() (line []byte, kept bool, err error) {
	for {
		if r.afterCR && r.start < r.end {
			if r.buffer[r.start] == '\n' {
				r.start++
			}
			r.afterCR = false
			r.scanned = r.start
		}
		if length := indexLineEnd(r.buffer[r.scanned:r.end]); length >= 0 {
			stop := r.scanned + length
			part := r.buffer[r.start:stop]
			r.afterCR = r.buffer[stop] == '\r'
			r.start, r.scanned = stop+1, stop+1
			if r.skipping {
				r.skipping = false
				continue
			}
			return r.finish(part)
		}
		r.scanned = r.end
		if r.failure != nil {
			part := r.buffer[r.start:r.end]
			r.start, r.scanned, r.end = 0, 0, 0
			if r.skipping || len(part)+r.collected == 0 {
				return nil, false, r.failure
			}
			return r.finish(part)
		}
		if err := r.fill(); err != nil {
			return nil, false, err
		}
	}
}

// finish returns the line that ends with part.
func (r *lineReader) finish(part []byte) ([]byte, bool, error) {
	line, kept := part, false
	if r.collected > 0 {
		line, kept = r.join(part), true
	}
	if r.first {
		r.first = false
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if len(line) > r.limit {
		return nil, false, errLineTooLong
	}
	return line, kept, nil
}

// fill makes room in the buffer and reads once.
func (r *lineReader) fill() error {
	if r.skipping {
		r.start, r.scanned, r.end = 0, 0, 0
	}
	if r.start > 0 {
		r.end = copy(r.buffer, r.buffer[r.start:r.end])
		r.start, r.scanned = 0, r.end
	}
	if r.end == len(r.buffer) {
		r.collect(r.buffer)
		r.start, r.scanned, r.end = 0, 0, 0
		if r.collected > r.limit+len(byteOrderMark) {
			r.pieces, r.collected = nil, 0
			r.skipping, r.first = true, false
			return errLineTooLong
		}
	}
	for range maxEmptyReads {
		n, err := r.in.Read(r.buffer[r.end:])
		r.end += n
		r.failure = err
		if n > 0 || err != nil {
			return nil
		}
	}
	r.failure = io.ErrNoProgress
	return nil
}

// collect copies part behind the pieces. A new piece is an eighth of what there is,
// so that few are needed and little stays unused.
func (r *lineReader) collect(part []byte) {
	r.collected += len(part)
	if last := len(r.pieces) - 1; last >= 0 {
		piece := r.pieces[last]
		room := min(len(part), cap(piece)-len(piece))
		r.pieces[last] = append(piece, part[:room]...)
		part = part[room:]
	}
	if len(part) > 0 {
		r.pieces = append(r.pieces, append(make([]byte, 0, max(readSize, r.collected/8)), part...))
	}
}

func (r *lineReader) join(part []byte) []byte {
	line := make([]byte, 0, r.collected+len(part))
	for i, piece := range r.pieces {
		line = append(line, piece...)
		r.pieces[i] = nil
	}
	r.pieces, r.collected = nil, 0
	return append(line, part...)
}

// indexLineEnd returns the position of the first \n or \r, or -1.
func indexLineEnd(text []byte) int {
	newline := bytes.IndexByte(text, '\n')
	if newline >= 0 {
		text = text[:newline]
	}
	if carriageReturn := bytes.IndexByte(text, '\r'); carriageReturn >= 0 {
		return carriageReturn
	}
	return newline
}
