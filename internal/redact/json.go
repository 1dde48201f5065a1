package redact

import (
	"hostr-daemon/internal/jsontext"
)

const (
	// notJSON stands for text that cannot be read as JSON.
	notJSON = `"[not JSON]"`
	// leftOutMember and leftOutElement mark what the limit left out.
	leftOutMember  = `"[left out]":true`
	leftOutElement = `"[left out]"`
	hidden         = `"` + Redacted + `"`
)

// redactor copies one JSON text and redacts on the way, in a single pass.
type redactor struct {
	text []byte
	dst  []byte
	// limit is how long dst may become before members and elements are left out.
	limit    int
	maxUnits int
	// full is set once the limit is reached: what is open is closed, and nothing
	// more is read.
	full bool
	// decoded is the buffer for strings with escapes.
	decoded []byte
	// level counts the strings around the text, when it stood in one itself.
	level int
}

func (r *redactor) document() []byte {
	if start := len(r.dst); !r.read() {
		return append(r.dst[:start], notJSON...)
	}
	return r.dst
}

// read copies the whole text, or as much as the limit lets it, and reports whether
// what it has read is JSON.
func (r *redactor) read() bool {
	start := len(r.dst)
	if r.limit > 0 {
		r.limit += start
	}
	end, ok := r.value(jsontext.SkipBlanks(r.text, 0), 0)
	return ok && (r.full || jsontext.SkipBlanks(r.text, end) == len(r.text))
}

// value copies the value at pos and returns its end, which means nothing once full
// is set, and false for what is not JSON.
func (r *redactor) value(pos, depth int) (int, bool) {
	if pos >= len(r.text) {
		return 0, false
	}
	switch r.text[pos] {
	case '{', '[':
		if depth == jsontext.MaxDepth {
			return 0, false
		}
		return r.container(pos, depth+1)
	case '"':
		end, plain, err := jsontext.String(r.text, pos)
		if err != nil {
			return 0, false
		}
		r.string(r.text[pos:end], plain)
		return end, true
	default:
		end, err := jsontext.Value(r.text, pos)
		if err != nil {
			return 0, false
		}
		r.dst = append(r.dst, r.text[pos:end]...)
		return end, true
	}
}

// container copies an object or an array.
func (r *redactor) container(open, depth int) (int, bool) {
	bracket := r.text[open]
	closing := bracket + 2 // '{' and '}', '[' and ']' are two apart
	r.dst = append(r.dst, bracket)
	pos := jsontext.SkipBlanks(r.text, open+1)
	if pos < len(r.text) && r.text[pos] == closing {
		r.dst = append(r.dst, closing)
		return pos + 1, true
	}
	secretTag := bracket == '[' && r.isSecretTag(pos)
	for first := true; ; first = false {
		if r.limit > 0 && len(r.dst) >= r.limit {
			r.leaveOut(bracket)
			return 0, true
		}
		var ok bool
		if bracket == '{' {
			pos, ok = r.member(pos, depth)
		} else if secretTag && !first {
			pos, ok = r.hide(pos)
		} else {
			pos, ok = r.value(pos, depth)
		}
		if !ok {
			return 0, false
		}
		if r.full {
			r.dst = append(r.dst, closing)
			return 0, true
		}
		pos = jsontext.SkipBlanks(r.text, pos)
		if pos >= len(r.text) || r.text[pos] != closing && r.text[pos] != ',' {
			return 0, false
		}
		r.dst = append(r.dst, r.text[pos])
		if r.text[pos] == closing {
			return pos + 1, true
		}
		pos = jsontext.SkipBlanks(r.text, pos+1)
	}
}

func (r *redactor) leaveOut(bracket byte) {
	r.full = true
	if bracket == '{' {
		r.dst = append(r.dst, leftOutMember+"}"...)
	} else {
		r.dst = append(r.dst, leftOutElement+"]"...)
	}
}

func (r *redactor) member(pos, depth int) (int, bool) {
	end, plain, err := jsontext.String(r.text, pos)
	if err != nil {
		return 0, false
	}
	key := r.text[pos+1 : end-1]
	if !plain {
		r.decoded = jsontext.AppendUnquoted(r.decoded[:0], r.text[pos:end])
		key, _ = withoutEscapes(r.decoded)
	}
	secret := isSecretKey(key)
	r.string(r.text[pos:end], plain)
	pos = jsontext.SkipBlanks(r.text, end)
	if pos >= len(r.text) || r.text[pos] != ':' {
		return 0, false
	}
	r.dst = append(r.dst, ':')
	pos = jsontext.SkipBlanks(r.text, pos+1)
	if secret {
		return r.hide(pos)
	}
	return r.value(pos, depth)
}

// hide skips the value at pos and writes a placeholder for it.
func (r *redactor) hide(pos int) (int, bool) {
	end, err := jsontext.Value(r.text, pos)
	if err != nil {
		return 0, false
	}
	r.dst = append(r.dst, hidden...)
	return end, true
}

// isSecretTag reports whether the array whose first element is at pos is a Nostr
// tag such as ["preimage", "…"].
func (r *redactor) isSecretTag(pos int) bool {
	if pos >= len(r.text) || r.text[pos] != '"' {
		return false
	}
	end, plain, err := jsontext.String(r.text, pos)
	return err == nil && plain && isSecretTagName(r.text[pos+1:end-1])
}

func (r *redactor) string(quoted []byte, plain bool) {
	content := quoted[1 : len(quoted)-1]
	if r.maxUnits > 0 && len(content) > r.maxUnits {
		r.longString(quoted, plain)
		return
	}
	if plain {
		if query := queryOf(content); query > 0 {
			r.dst = jsontext.AppendQuoted(r.dst, withoutQuery(content, query))
			return
		}
		if _, found := findSecret(content, 0); !found {
			r.dst = jsontext.AppendSafe(r.dst, quoted)
			return
		}
	} else {
		r.decoded = jsontext.AppendUnquoted(r.decoded[:0], quoted)
		if inner, ok := r.inner(r.decoded); ok {
			r.dst = jsontext.AppendQuoted(r.dst, inner)
			return
		}
		content = readable(r.decoded)
		if query := queryOf(content); query > 0 {
			r.dst = jsontext.AppendQuoted(r.dst, withoutQuery(content, query))
			return
		}
	}
	r.dst = jsontext.AppendQuoted(r.dst, appendText(nil, content, len(content)))
}

// maxLevel is how many strings within strings are read as JSON.
const maxLevel = 8

// inner redacts the decoded content of a string as JSON, by keys, and reports false
// when it is none.
func (r *redactor) inner(content []byte) ([]byte, bool) {
	if r.level == maxLevel || !looksLikeJSON(content) {
		return nil, false
	}
	inner := redactor{text: content, limit: 3 * r.maxUnits, maxUnits: r.maxUnits, level: r.level + 1}
	ok := inner.read()
	return inner.dst, ok
}

// looksLikeJSON reports whether the text may be a JSON value that holds a string.
func looksLikeJSON(text []byte) bool {
	pos := jsontext.SkipBlanks(text, 0)
	return pos < len(text) && (text[pos] == '{' || text[pos] == '[' || text[pos] == '"')
}

// lookahead is how many bytes behind the cut are searched for the rest of a secret
// that begins before it.
const lookahead = 4096

// longString cuts a string without decoding or copying more of it than is shown:
// it may be an image of a hundred megabytes.
func (r *redactor) longString(quoted []byte, plain bool) {
	content := quoted[1 : len(quoted)-1]
	window := content[:min(len(content), 3*r.maxUnits+lookahead)]
	if !plain {
		r.decoded = jsontext.AppendUnquotedPrefix(r.decoded[:0], quoted, 3*r.maxUnits+lookahead)
		window = r.decoded
	}
	shown, ok := r.inner(window)
	if ok {
		shown = shown[:unitOffset(shown, r.maxUnits)]
	} else {
		window = readable(window)
		if query := queryOf(window); query > 0 {
			window = withoutQuery(window, query)
		}
		shown = appendText(nil, window, unitOffset(window, r.maxUnits))
	}
	if units := countUnits(content, plain); units > r.maxUnits {
		shown = appendCutMark(shown, units)
	}
	r.dst = jsontext.AppendQuoted(r.dst, shown)
}
