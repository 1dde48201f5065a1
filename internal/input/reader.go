// Package input reads the raw JSON objects that callers send into typed values:
// text, numbers, booleans, dates, anchors, pubkeys, amounts, prices, images.
//
// It knows the forms that are accepted, the aliases and the error of each bad
// value, and collects all problems of one input (spec 30 §8–11). It must never
// know an action, a session, or anything outside the text it is given.
//
// The generated parsers of package actions are chains of it: a Reader stands for
// the object, a Property for one key of it, and each reading method for one kind.
package input

import (
	"encoding/json"
	"unsafe"

	"github.com/tidwall/gjson"

	"hostr-daemon/internal/fault"
)

// Reader reads the properties of one JSON object. It collects problems instead of
// stopping at the first; Err tells them once everything has been read.
type Reader struct {
	// path is where the object stands, empty for the input itself.
	path     string
	values   map[string]gjson.Result
	problems *problems
}

// NewReader returns a reader over an action's input. Anything but an object
// counts as an empty one; of a key that stands twice the last one counts. What is read
// shares the bytes of raw, which must never change.
func NewReader(raw json.RawMessage) *Reader {
	reader := &Reader{problems: &problems{}}
	if len(raw) == 0 {
		return reader
	}
	// Deep nesting is refused here, so that nothing below recurses without end.
	if !json.Valid(raw) {
		reader.problems.add(Problem{
			Code: fault.InvalidInput, Reason: ReasonFormat,
			Message: "the input is not valid JSON, or nested too deeply to be meant",
			Hint:    "a JSON object such as {}",
		})
		reader.problems.final = true
		return reader
	}
	// In place: it may hold an image of a hundred megabytes.
	if node := gjson.Parse(unsafe.String(unsafe.SliceData(raw), len(raw))); node.IsObject() {
		reader.values = membersOf(node)
	}
	return reader
}

// Property returns the property of that name. An alias counts when the name
// itself is absent or null, and for lists also when the list is empty. Problems
// are told of the name, whichever key held the value.
func (r *Reader) Property(name string, aliases ...string) Property {
	property := Property{reader: r, path: join(r.path, name)}.as(fault.InvalidInput)
	for _, key := range append([]string{name}, aliases...) {
		if value, found := r.values[key]; found && value.Type != gjson.Null {
			property.candidates = append(property.candidates, value)
		}
	}
	return property
}

// Present reports whether one of the keys stands in the object, null included.
func (r *Reader) Present(names ...string) bool {
	for _, name := range names {
		if _, found := r.values[name]; found {
			return true
		}
	}
	return false
}

// Err returns the problems found, nil when there are none: one *fault.Error, the
// first problem, with Details.
func (r *Reader) Err() error { return r.problems.err() }

// nested returns a reader over an object inside the input.
func (r *Reader) nested(object gjson.Result, path string) *Reader {
	return &Reader{path: path, values: membersOf(object), problems: r.problems}
}

func membersOf(object gjson.Result) map[string]gjson.Result {
	members := map[string]gjson.Result{}
	object.ForEach(func(key, value gjson.Result) bool {
		members[key.Str] = value
		return true
	})
	return members
}

// join puts a property's name behind the path of its object.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
