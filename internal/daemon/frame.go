package daemon

import (
	"bytes"
	"unicode/utf8"
	"unsafe"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/jsontext"
)

// frame is one request line, taken apart but not decoded (spec 10 §2.1). Its parts
// are parts of the line.
type frame struct {
	line                        []byte
	id, method, traceID, params jsontext.Span
}

// parseFrame takes a line apart. Of a key that is given twice the last counts.
func parseFrame(line []byte) (frame, *fault.Error) {
	f := frame{line: line}
	if line[0] != '{' {
		if _, err := jsontext.Document(line); err != nil {
			return frame{}, notJSON(err)
		}
		return frame{}, fault.New(fault.InvalidRequest, "a request must be a JSON object").
			WithHint(`Send {"id": …, "method": …, "params": {…}} on one line.`)
	}
	err := jsontext.Members(line, func(key, value jsontext.Span) {
		switch string(memberName(key.Of(line))) {
		case "id":
			f.id = value
		case "method":
			f.method = value
		case "traceId":
			f.traceID = value
		case "params":
			f.params = value
		}
	})
	if err != nil {
		return frame{}, notJSON(err)
	}
	return f, nil
}

func notJSON(err error) *fault.Error {
	return fault.New(fault.UnexpectedError, "%w", err).WithHint("Send one JSON object per line.")
}

// keep copies the line when it is only lent, so that the frame's parts last.
func (f *frame) keep(kept bool) {
	if !kept {
		f.line = bytes.Clone(f.line)
	}
}

// idText returns the id as JSON text for the answer: unchanged, except that it is
// made safe for line readers. A missing id is null.
func (f *frame) idText() []byte {
	id := f.id.Of(f.line)
	switch {
	case len(id) == 0:
		return nullText
	case bytes.IndexByte(id, 0xe2) >= 0: // the first byte of U+2028 and U+2029
		return jsontext.AppendSafe(nil, id)
	default:
		return id
	}
}

// paramsText returns the parameters, "{}" for anything that is no object.
func (f *frame) paramsText() []byte {
	if params := f.params.Of(f.line); len(params) > 0 && params[0] == '{' {
		return params
	}
	return emptyObject
}

var (
	nullText    = []byte("null")
	emptyObject = []byte("{}")
	trueText    = []byte("true")
)

// memberName returns the name of a quoted key.
func memberName(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	return jsontext.AppendUnquoted(nil, quoted)
}

// textOf returns the text form of a JSON value: the content of a string, the JSON
// text of anything else, nothing for null and a missing value (spec 10 §2.1). The
// result is part of raw unless raw has escapes.
func textOf(raw []byte) []byte {
	if len(raw) == 0 || raw[0] == 'n' {
		return nil
	}
	if raw[0] != '"' {
		return raw
	}
	return memberName(raw)
}

// trimmedText returns the text form without the blanks around it.
func trimmedText(raw []byte) []byte { return bytes.TrimSpace(textOf(raw)) }

// largeText is the length from which a parameter's text shares the memory of its
// line instead of being copied.
const largeText = 4 << 10

// stringOf returns the text as a string. The text must be part of a line that was
// kept: nothing writes to it any more, which is what makes sharing it safe. An
// image of 100 MB would otherwise be copied for nothing.
func stringOf(text []byte) string {
	if len(text) < largeText {
		return string(text)
	}
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// keyOf returns the name under which a request can be cancelled, "" for none.
func keyOf(id []byte) string { return string(trimmedText(id)) }

// validText returns the line with every byte that is not UTF-8 replaced by U+FFFD,
// and whether it is a copy.
func validText(line []byte) ([]byte, bool) {
	if utf8.Valid(line) {
		return line, false
	}
	return bytes.ToValidUTF8(line, []byte("\ufffd")), true
}
