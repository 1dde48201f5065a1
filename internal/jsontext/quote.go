package jsontext

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
	"unsafe"
)

const hexDigits = "0123456789abcdef"

// AppendQuoted appends content as a JSON string. Bytes that are not UTF-8 become
// U+FFFD; U+2028 and U+2029 are escaped, since some line readers end a line there.
func AppendQuoted(dst, content []byte) []byte {
	dst = append(dst, '"')
	for len(content) > 0 {
		plain := plainPrefix(content)
		dst = append(dst, content[:plain]...)
		content = content[plain:]
		if len(content) == 0 {
			break
		}
		r, size := utf8.DecodeRune(content)
		dst = appendRune(dst, r)
		content = content[size:]
	}
	return append(dst, '"')
}

// AppendQuotedString is AppendQuoted for a string.
func AppendQuotedString(dst []byte, content string) []byte {
	return AppendQuoted(dst, unsafe.Slice(unsafe.StringData(content), len(content))) // only read
}

// AppendUnquoted appends the content of a JSON string, given with its quotes, as
// String has accepted it. Half a surrogate pair becomes U+FFFD.
func AppendUnquoted(dst, quoted []byte) []byte {
	return AppendUnquotedPrefix(dst, quoted, len(quoted))
}

// AppendUnquotedPrefix is AppendUnquoted that reads no more of the string than it
// takes to append limit bytes; the last character may be cut or stand beyond.
func AppendUnquotedPrefix(dst, quoted []byte, limit int) []byte {
	content := quoted[1 : len(quoted)-1]
	for limit += len(dst); len(content) > 0 && len(dst) < limit; {
		stretch := content[:min(len(content), limit-len(dst))]
		if slash := bytes.IndexByte(stretch, '\\'); slash >= 0 {
			dst = append(dst, stretch[:slash]...)
			var size int
			dst, size = appendEscape(dst, content[slash:])
			content = content[slash+size:]
			continue
		}
		dst = append(dst, stretch...)
		content = content[len(stretch):]
	}
	return dst
}

// AppendSafe appends valid JSON text with its bytes unchanged, except that bytes
// that are not UTF-8 become U+FFFD and that U+2028 and U+2029 are escaped.
func AppendSafe(dst, text []byte) []byte {
	for len(text) > 0 {
		ascii := asciiPrefix(text)
		dst = append(dst, text[:ascii]...)
		text = text[ascii:]
		if len(text) == 0 {
			break
		}
		r, size := utf8.DecodeRune(text)
		dst = appendRune(dst, r)
		text = text[size:]
	}
	return dst
}

// appendRune appends one character of a string, escaped where it must be.
func appendRune(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r == '\n':
		return append(dst, '\\', 'n')
	case r == '\r':
		return append(dst, '\\', 'r')
	case r == '\t':
		return append(dst, '\\', 't')
	case r < ' ':
		return append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&0xf])
	case r == '\u2028' || r == '\u2029':
		return append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
	default:
		return utf8.AppendRune(dst, r)
	}
}

// appendEscape appends the character of the escape that text begins with and
// returns how many bytes of text it took.
func appendEscape(dst, text []byte) ([]byte, int) {
	switch text[1] {
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'u':
		first := codeUnit(text[2:6])
		if first < 0xd800 || first > 0xdfff {
			return utf8.AppendRune(dst, first), 6
		}
		if first < 0xdc00 && len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
			if second := codeUnit(text[8:12]); second >= 0xdc00 && second <= 0xdfff {
				return utf8.AppendRune(dst, (first-0xd800)<<10|(second-0xdc00)+0x10000), 12
			}
		}
		return utf8.AppendRune(dst, utf8.RuneError), 6
	default:
		return append(dst, text[1]), 2
	}
}

func codeUnit(digits []byte) rune {
	var unit rune
	for _, digit := range digits {
		unit = unit<<4 | rune(hexDigit(digit))
	}
	return unit
}

func hexDigit(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	default:
		return -1
	}
}

// plainPrefix returns how many bytes need no escape and are ASCII.
func plainPrefix(content []byte) int {
	pos := 0
	for pos+8 <= len(content) {
		word := binary.LittleEndian.Uint64(content[pos:])
		if special(word)|word&highs != 0 {
			break
		}
		pos += 8
	}
	for pos < len(content) {
		if b := content[pos]; b < ' ' || b == '"' || b == '\\' || b >= utf8.RuneSelf {
			break
		}
		pos++
	}
	return pos
}

func asciiPrefix(text []byte) int {
	pos := 0
	for pos+8 <= len(text) && binary.LittleEndian.Uint64(text[pos:])&highs == 0 {
		pos += 8
	}
	for pos < len(text) && text[pos] < utf8.RuneSelf {
		pos++
	}
	return pos
}
