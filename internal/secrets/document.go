package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// document is the JSON object of all entries, in the form of the old daemon (spec
// 11 §5.1). Values stay as they were written, so that one the daemon does not know
// survives.
type document map[string]json.RawMessage

// plainText is the codec of the plain file.
type plainText struct{}

func (plainText) decode(content []byte) (document, error) { return parseDocument(content) }
func (plainText) encode(entries document) ([]byte, error) { return entries.text() }

// parseDocument never repeats the text in an error.
func parseDocument(content []byte) (document, error) {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrDamaged)
	}
	if !utf8.Valid(content) {
		return nil, fmt.Errorf("%w: it is no UTF-8 text", ErrDamaged)
	}
	var entries document
	err := json.Unmarshal(content, &entries)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("%w: it is no JSON from byte %d on", ErrDamaged, syntax.Offset)
	case err != nil || entries == nil:
		return nil, fmt.Errorf("%w: it holds no JSON object", ErrDamaged)
	default:
		return entries, nil
	}
}

// text is pretty-printed with two spaces, the keys sorted.
func (d document) text() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return nil, errors.New("the entries cannot be encoded")
	}
	return bytes.TrimRight(text.Bytes(), "\n"), nil
}

// value returns an entry; a value that is no string is its compact JSON text, and
// null is no value.
func (d document) value(key string) (string, bool) {
	raw, stored := d[key]
	if !stored || bytes.Equal(raw, []byte("null")) {
		return "", false
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return string(raw), true
	}
	return compact.String(), true
}

// with returns a copy with one entry set or, if keep is false, removed.
func (d document) with(key, value string, keep bool) document {
	changed := maps.Clone(d)
	if changed == nil {
		changed = document{}
	}
	if keep {
		changed[key] = json.RawMessage(encodeJSON(value))
	} else {
		delete(changed, key)
	}
	return changed
}

func (d document) equal(other document) bool {
	return maps.EqualFunc(d, other, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

func (d document) keys() []string { return slices.Sorted(maps.Keys(d)) }

// encodeJSON returns compact JSON as the old daemon writes it, without escapes for
// HTML. The value is a text, or a struct or list of texts, which cannot fail.
func encodeJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	return string(bytes.TrimRight(text.Bytes(), "\n"))
}
