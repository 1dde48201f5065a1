package relayproxy

import (
	"bytes"
	"encoding/json"
)

// head is what the first two elements of a frame say. second is "" when the
// second element is no string.
type head struct{ label, second string }

// readHead reads the first two elements of a JSON array without reading the
// rest, which may be a large event. Anything else has an empty head.
func readHead(frame []byte) head {
	rest := bytes.TrimLeft(frame, " \t\r\n")
	if len(rest) == 0 || rest[0] != '[' {
		return head{}
	}
	label, rest := readString(rest[1:])
	rest = bytes.TrimLeft(rest, " \t\r\n")
	if label == "" || len(rest) == 0 || rest[0] != ',' {
		return head{label: label}
	}
	second, _ := readString(rest[1:])
	return head{label: label, second: second}
}

// readString reads one JSON string and returns what follows it.
func readString(text []byte) (value string, rest []byte) {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || text[0] != '"' {
		return "", nil
	}
	for end := 1; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case '"':
			if json.Unmarshal(text[:end+1], &value) != nil {
				return "", nil
			}
			return value, text[end+1:]
		}
	}
	return "", nil
}

// frameOf encodes the elements as one frame.
func frameOf(elements ...any) []byte {
	frame, err := json.Marshal(elements)
	if err != nil {
		panic(err) // only strings, booleans, raw JSON and events are passed
	}
	return frame
}

// element returns element i of a frame, or nil.
func element(frame []byte, i int) json.RawMessage {
	var elements []json.RawMessage
	if json.Unmarshal(frame, &elements) != nil || len(elements) <= i {
		return nil
	}
	return elements[i]
}
