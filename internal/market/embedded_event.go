package market

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nbd-wtf/go-nostr"
)

// maxEventText bounds, in bytes, the JSON of one event or of its content that is
// read. Private messages hold less than 64 KiB, relays take little more; the
// bound only keeps a stranger's text from costing real memory.
const maxEventText = 1 << 20

// DecodeEmbeddedEvent reads an event that stands as JSON in another one
// (spec 60 §4.1): keys in any order, unknown ones ignored, id, pubkey, content,
// tags and sig may be missing or null. Neither id nor signature is checked, see
// IsSigned. Text that is no such event or longer than 1 MiB is an error.
func DecodeEmbeddedEvent(text string) (*nostr.Event, error) {
	fields, err := readFields(text)
	if err != nil {
		return nil, err
	}
	event := &nostr.Event{
		ID:      fields.optionalText("id"),
		PubKey:  fields.optionalText("pubkey"),
		Tags:    fields.tags("tags"),
		Content: fields.optionalText("content"),
		Sig:     fields.optionalText("sig"),
	}
	event.CreatedAt = nostr.Timestamp(fields.integer("created_at"))
	kind := fields.integer("kind")
	event.Kind = int(kind)
	if fields.problem == nil && int64(event.Kind) != kind {
		fields.fail("kind", "is out of range")
	}
	if fields.problem != nil {
		return nil, fmt.Errorf("the text is no event: %w", fields.problem)
	}
	return event, nil
}

// EncodeEmbeddedEvent writes an event as it stands in other events (spec 50
// §2.3): compact, keys in the order of NIP-01, the signature null while there is
// none. Characters are escaped as in the text that ids are hashed from.
func EncodeEmbeddedEvent(event *nostr.Event) string {
	return string(appendEvent(make([]byte, 0, 512+len(event.Content)), event))
}

// IsSigned reports whether the event's id is the right one and its signature is
// its author's.
func IsSigned(event *nostr.Event) bool {
	if event == nil || !isHex(event.PubKey, 64) || !isHex(event.Sig, 128) || !event.CheckID() {
		return false
	}
	genuine, err := event.CheckSignature()
	return err == nil && genuine
}

func appendEvent(text []byte, event *nostr.Event) []byte {
	text = appendQuoted(append(text, `{"id":`...), event.ID)
	text = appendQuoted(append(text, `,"pubkey":`...), event.PubKey)
	text = strconv.AppendInt(append(text, `,"created_at":`...), int64(event.CreatedAt), 10)
	text = strconv.AppendInt(append(text, `,"kind":`...), int64(event.Kind), 10)
	text = append(text, `,"tags":[`...)
	for i, tag := range event.Tags {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendTexts(text, tag)
	}
	text = appendQuoted(append(text, `],"content":`...), event.Content)
	text = append(text, `,"sig":`...)
	if event.Sig == "" {
		return append(text, `null}`...)
	}
	return append(appendQuoted(text, event.Sig), '}')
}

func appendTexts(text []byte, elements []string) []byte {
	text = append(text, '[')
	for i, element := range elements {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendQuoted(text, element)
	}
	return append(text, ']')
}

// appendQuoted writes a JSON string of which others compute hashes: only quotes,
// backslashes and control characters are escaped, what encoding/json cannot be
// told to do (U+2028). Bytes that are not UTF-8 become U+FFFD.
func appendQuoted(text []byte, value string) []byte {
	const hexDigits = "0123456789abcdef"
	value = strings.ToValidUTF8(value, "\uFFFD")
	text = append(text, '"')
	for i := range len(value) {
		switch char := value[i]; {
		case char == '"' || char == '\\':
			text = append(text, '\\', char)
		case char >= 0x20:
			text = append(text, char)
		case char == '\b':
			text = append(text, `\b`...)
		case char == '\t':
			text = append(text, `\t`...)
		case char == '\n':
			text = append(text, `\n`...)
		case char == '\f':
			text = append(text, `\f`...)
		case char == '\r':
			text = append(text, `\r`...)
		default:
			text = append(text, '\\', 'u', '0', '0', hexDigits[char>>4], hexDigits[char&15])
		}
	}
	return append(text, '"')
}

// isHex reports whether the text is that many lower-case hex digits.
func isHex(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}

// fieldReader reads a JSON object of event content key by key. Null counts as
// absent. It keeps the case of the keys, which decoding into a struct would not,
// and the first problem met.
type fieldReader struct {
	raw     map[string]json.RawMessage
	problem error
}

// readFields reads an object; an error says that the text is none.
func readFields(text string) (*fieldReader, error) {
	if len(text) > maxEventText {
		return nil, fmt.Errorf("the JSON is %d bytes long, more than %d", len(text), maxEventText)
	}
	fields := &fieldReader{}
	if err := json.Unmarshal([]byte(text), &fields.raw); err != nil {
		return nil, fmt.Errorf("the JSON is no object: %w", err)
	}
	if fields.raw == nil {
		return nil, errors.New("the JSON is null instead of an object")
	}
	return fields, nil
}

func (r *fieldReader) fail(key, problem string) {
	if r.problem == nil {
		r.problem = fmt.Errorf("its %s %s", key, problem)
	}
}

func (r *fieldReader) has(key string) bool {
	raw, present := r.raw[key]
	return present && string(raw) != "null"
}

// text reads a string that must be there.
func (r *fieldReader) text(key string) string {
	if !r.has(key) {
		r.fail(key, "is missing")
	}
	return r.optionalText(key)
}

func (r *fieldReader) optionalText(key string) string {
	if !r.has(key) {
		return ""
	}
	var text string
	if err := json.Unmarshal(r.raw[key], &text); err != nil {
		r.fail(key, "is no text")
	}
	return text
}

// integer reads a number that must be there, without a point or exponent.
func (r *fieldReader) integer(key string) int64 {
	number, err := strconv.ParseInt(string(r.raw[key]), 10, 64)
	if err != nil {
		r.fail(key, "is no integer")
	}
	return number
}

// integerOr reads an integer, or returns the default when there is none.
func (r *fieldReader) integerOr(key string, missing int64) int64 {
	if !r.has(key) {
		return missing
	}
	return r.integer(key)
}

// object reads a nested object; nil when absent.
func (r *fieldReader) object(key string) *fieldReader {
	if !r.has(key) {
		return nil
	}
	fields, err := readFields(string(r.raw[key]))
	if err != nil {
		r.fail(key, "is no object")
		return nil
	}
	return fields
}

// event reads a nested event; nil when absent.
func (r *fieldReader) event(key string) *nostr.Event {
	if !r.has(key) {
		return nil
	}
	event, err := DecodeEmbeddedEvent(string(r.raw[key]))
	if err != nil {
		r.fail(key, "is no event")
	}
	return event
}

// texts reads a list of strings; nil when absent.
func (r *fieldReader) texts(key string) []string {
	if !r.has(key) {
		return nil
	}
	var texts []string
	if err := json.Unmarshal(r.raw[key], &texts); err != nil {
		r.fail(key, "is no list of texts")
	}
	return texts
}

// tags reads tags as tolerantly as the other clients do: what is no array is
// skipped, elements that are no text count as the JSON they are, null as empty.
func (r *fieldReader) tags(key string) nostr.Tags {
	tags := nostr.Tags{}
	if !r.has(key) {
		return tags
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(r.raw[key], &entries); err != nil {
		r.fail(key, "are no list")
	}
	for _, entry := range entries {
		var elements []json.RawMessage
		if json.Unmarshal(entry, &elements) != nil || elements == nil {
			continue
		}
		tag := make(nostr.Tag, len(elements))
		for i, element := range elements {
			if json.Unmarshal(element, &tag[i]) != nil {
				tag[i] = strings.ToValidUTF8(string(element), "\uFFFD")
			}
		}
		tags = append(tags, tag)
	}
	return tags
}
