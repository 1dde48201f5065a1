package input

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"hostr-daemon/internal/fault"
)

// Property is one property of an object. What it must be like is said by
// Required, RequiredUnless, Lower, Clamp, Range and Code, which return a changed
// copy; then one reading method takes the value. A reading method returns the
// zero value after a problem.
type Property struct {
	reader *Reader
	path   string
	// candidates are the values under the name and its aliases that are not null.
	candidates []gjson.Result
	required   bool
	// liftedBy names the property without which this one is required.
	liftedBy string
	lower    bool
	// code is the error code of a bad value, missingCode of none at all.
	code        fault.Code
	missingCode fault.Code
	bounds      *bounds
}

// Required makes absence a problem.
func (p Property) Required() Property {
	p.required = true
	return p
}

// RequiredUnless makes absence a problem where the other property is not given.
// Where it is given, this one is not read at all.
func (p Property) RequiredUnless(other string) Property {
	if p.reader.Property(other).Given() {
		p.candidates = nil
		return p
	}
	p.required, p.liftedBy = true, other
	return p
}

// Lower turns text to lower case before anything looks at it.
func (p Property) Lower() Property {
	p.lower = true
	return p
}

// Code sets the error code of a value that does not pass. A missing value stays
// invalid_input.
func (p Property) Code(code fault.Code) Property {
	p.code = code
	return p
}

// as sets the error code of a bad and of a missing value.
func (p Property) as(code fault.Code) Property {
	p.code, p.missingCode = code, code
	return p
}

// Given reports whether there is a value; blank text is none.
func (p Property) Given() bool {
	if len(p.candidates) == 0 {
		return false
	}
	value := p.candidates[0]
	return value.Type != gjson.String || clean(value.Str) != ""
}

// Text reads text, trimmed; absent and blank are empty. Numbers and booleans
// count with their text.
func (p Property) Text() string {
	text, _ := p.text()
	return text
}

// Word reads text that must be one of the words; absent is empty.
func (p Property) Word(words ...string) string { return p.WordOr("", words...) }

// WordOr reads text that must be one of the words, with a default.
func (p Property) WordOr(standard string, words ...string) string {
	text, ok := p.text()
	switch {
	case !ok || text == "":
		return standard
	case slices.Contains(words, text):
		return text
	}
	list := strings.Join(words, ", ")
	p.fail(ReasonEnum, list, "must be one of: %s", list)
	return standard
}

// text reads text and reports whether it could be read; absence can.
func (p Property) text() (string, bool) {
	if len(p.candidates) == 0 {
		return "", p.absent()
	}
	text, ok := textOf(p.candidates[0])
	if !ok {
		p.wrongType("text", "")
		return "", false
	}
	if p.lower {
		text = strings.ToLower(text)
	}
	if text == "" {
		return "", p.absent()
	}
	return text, true
}

// absent reports whether the value may be absent, and says so where it may not.
func (p Property) absent() bool {
	if p.required {
		p.missing("")
	}
	return !p.required
}

func (p Property) missing(hint string) {
	p.code = p.missingCode
	if p.liftedBy != "" {
		p.fail(ReasonMissing, hint, "is required unless %s is given", p.liftedBy)
		return
	}
	p.fail(ReasonMissing, hint, "is required")
}

func (p Property) wrongType(wanted, hint string) {
	p.fail(ReasonType, hint, "must be %s, not %s", wanted, kindOf(p.candidates[0]))
}

// fail notes a problem of this property. The message says what the value must be
// and never quotes it: it may be a secret that was put in the wrong place.
func (p Property) fail(reason Reason, hint, format string, args ...any) {
	p.reader.problems.add(Problem{
		Code: p.code, Reason: reason, Path: p.path, Hint: hint,
		Message: p.path + " " + fmt.Sprintf(format, args...),
	})
}

// item returns the property that stands for one item of this list.
func (p Property) item(index int, value gjson.Result) Property {
	return Property{
		reader: p.reader, path: fmt.Sprintf("%s[%d]", p.path, index),
		candidates: []gjson.Result{value}, code: p.code, missingCode: p.missingCode,
	}
}

// textOf reads a value as trimmed text; objects and lists are none.
func textOf(value gjson.Result) (string, bool) {
	switch value.Type {
	case gjson.String:
		return clean(value.Str), true
	case gjson.Number:
		return numberText(value.Raw), true
	case gjson.True, gjson.False:
		return value.Raw, true
	default:
		return "", value.Type == gjson.Null
	}
}

// clean trims text and replaces bytes that are no UTF-8.
func clean(text string) string { return strings.TrimSpace(replaceBadBytes(text)) }

// replaceBadBytes replaces bytes that are no UTF-8.
func replaceBadBytes(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// kindOf names the JSON kind of a value for a message.
func kindOf(value gjson.Result) string {
	switch {
	case value.IsObject():
		return "an object"
	case value.IsArray():
		return "a list"
	case value.Type == gjson.Number:
		return "a number"
	case value.Type == gjson.String:
		return "this text"
	case value.Type == gjson.Null:
		return "null"
	default:
		return "a boolean"
	}
}
