package daemon

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/jsontext"
)

// parameter is one of the names that any method reads.
type parameter int

const (
	paramAction parameter = iota
	paramPubkey
	paramInput
	paramNotificationToken
	paramBase64
	paramMIME
	paramFilename
	paramRequestID
	paramRegenerate
	paramTimeoutSeconds
	paramNSec
	paramTraceID
	parameterCount
)

var parameterNames = [parameterCount]string{
	paramAction:            "action",
	paramPubkey:            "pubkey",
	paramInput:             "input",
	paramNotificationToken: "notificationToken",
	paramBase64:            "base64",
	paramMIME:              "mime",
	paramFilename:          "filename",
	paramRequestID:         "requestId",
	paramRegenerate:        "regenerate",
	paramTimeoutSeconds:    "timeoutSeconds",
	paramNSec:              "nsec",
	paramTraceID:           "traceId",
}

// parameters hold the JSON text of each known parameter, coerced when they are
// asked for by the rules of spec 10 §2.1.
type parameters [parameterCount][]byte

// parseParameters reads a valid JSON object.
func parseParameters(object []byte) parameters {
	var p parameters
	if len(object) == len(emptyObject) {
		return p
	}
	// The object is part of a frame that has been checked, so there is no error.
	_ = jsontext.Members(object, func(key, value jsontext.Span) {
		name := memberName(key.Of(object))
		for known := range parameterNames {
			if parameterNames[known] == string(name) {
				p[known] = value.Of(object)
			}
		}
	})
	return p
}

// required returns the text, or missing_param.
func (p *parameters) required(name parameter) (string, *fault.Error) {
	text := p.optional(name)
	if text == "" {
		return "", fault.New(fault.MissingParam, "the parameter %s is missing or blank", parameterNames[name]).At(parameterNames[name])
	}
	return text, nil
}

// optional returns the text, "" when there is none.
func (p *parameters) optional(name parameter) string { return stringOf(trimmedText(p[name])) }

// flag is true for JSON true and nothing else.
func (p *parameters) flag(name parameter) bool { return bytes.Equal(p[name], trueText) }

// object returns the JSON object, "{}" for anything else.
func (p *parameters) object(name parameter) []byte {
	if raw := p[name]; len(raw) > 0 && raw[0] == '{' {
		return raw
	}
	return emptyObject
}

// integer returns the whole number, and false when there is none: a JSON number,
// truncated toward zero, or a string that holds one, decimal or with 0x in hex.
func (p *parameters) integer(name parameter) (int64, bool) {
	raw := p[name]
	if len(raw) == 0 {
		return 0, false
	}
	switch first := raw[0]; {
	case first == '"':
		return parseInteger(string(trimmedText(raw)))
	case first == '-' || first >= '0' && first <= '9':
		return truncate(string(raw))
	default:
		return 0, false
	}
}

func parseInteger(text string) (int64, bool) {
	unsigned := strings.TrimLeft(text, "+-")
	base := 10
	if len(text)-len(unsigned) > 1 {
		return 0, false
	}
	if len(unsigned) > 2 && (unsigned[:2] == "0x" || unsigned[:2] == "0X") {
		text, base = text[:len(text)-len(unsigned)]+unsigned[2:], 16
	}
	value, err := strconv.ParseInt(text, base, 64)
	return value, err == nil
}

func truncate(number string) (int64, bool) {
	if value, err := strconv.ParseInt(number, 10, 64); err == nil {
		return value, true
	}
	value, _ := strconv.ParseFloat(number, 64) // out of range is ±Inf, clamped below
	switch {
	case value >= math.MaxInt64:
		return math.MaxInt64, true
	case value <= math.MinInt64:
		return math.MinInt64, true
	default:
		return int64(value), true
	}
}
