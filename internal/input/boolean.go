package input

import (
	"strings"

	"github.com/tidwall/gjson"
)

// BoolOr reads a boolean with a default. The words true, yes, 1, false, no and 0
// in any case count too; anything else is a problem, so that no unreadable word
// can turn a preview into the real thing (spec 30 §12).
func (p Property) BoolOr(standard bool) bool {
	if value := p.OptionalBool(); value != nil {
		return *value
	}
	return standard
}

// OptionalBool is BoolOr where absence is nil.
func (p Property) OptionalBool() *bool {
	if len(p.candidates) == 0 {
		p.absent()
		return nil
	}
	value, ok := boolean(p.candidates[0])
	if !ok {
		p.wrongType("true or false", "true, yes, 1, false, no or 0")
		return nil
	}
	return &value
}

func boolean(value gjson.Result) (bool, bool) {
	text, ok := textOf(value)
	if !ok {
		return false, false
	}
	switch strings.ToLower(text) {
	case "true", "yes", "1":
		return true, true
	case "false", "no", "0":
		return false, true
	default:
		return false, false
	}
}
