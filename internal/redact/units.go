package redact

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// appendCutMark tells the full length of a string that was cut.
func appendCutMark(dst []byte, units int) []byte {
	dst = append(dst, "... [truncated "...)
	dst = strconv.AppendInt(dst, int64(units), 10)
	return append(dst, " chars]"...)
}

// unitOffset returns the offset in bytes of the first n UTF-16 units of the text,
// or its length when it has fewer. A pair of units is not split.
func unitOffset(text []byte, n int) int {
	units := 0
	for pos := 0; pos < len(text); {
		r, size := utf8.DecodeRune(text[pos:])
		units++
		if r > 0xffff {
			units++
		}
		if units > n {
			return pos
		}
		pos += size
	}
	return len(text)
}

// countUnits returns the length in UTF-16 units of the content of a JSON string
// that has escapes unless it is plain.
func countUnits(content []byte, plain bool) int {
	if plain {
		return countPlainUnits(content)
	}
	units := 0
	for {
		slash := bytes.IndexByte(content, '\\')
		if slash < 0 {
			return units + countPlainUnits(content)
		}
		units += countPlainUnits(content[:slash]) + 1
		size := 2
		if content[slash+1] == 'u' {
			size = 6
		}
		content = content[slash+size:]
	}
}

// countPlainUnits counts the bytes that begin a character, and those that begin
// one of four bytes, a pair of units, once more.
func countPlainUnits(text []byte) int {
	const highs = 0x8080808080808080
	units := len(text)
	pos := 0
	for ; pos+8 <= len(text); pos += 8 {
		word := binary.LittleEndian.Uint64(text[pos:])
		if word&highs == 0 {
			continue
		}
		continuation := word & highs &^ (word << 1)
		fourBytes := word & (word << 1) & (word << 2) & (word << 3) & highs
		units += bits.OnesCount64(fourBytes) - bits.OnesCount64(continuation)
	}
	for _, b := range text[pos:] {
		switch {
		case b >= 0xf0:
			units++
		case b >= 0x80 && b < 0xc0:
			units--
		}
	}
	return units
}
