package environment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// value is one JSON value with its members in file order and duplicates kept, so
// that both can be reported.
type value struct {
	kind    kind
	text    string // of a text, or the digits of a number
	items   []value
	members []member
}

type member struct {
	name  string
	value value
}

type kind string

const (
	kindNull    kind = "null"
	kindBoolean kind = "true or false"
	kindNumber  kind = "a number"
	kindText    kind = "a text"
	kindList    kind = "a list"
	kindObject  kind = "an object"
)

// parseJSON reads one JSON value and nothing after it. An error tells line and
// column, never content.
func parseJSON(data []byte) (value, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return value{}, syntaxError(data, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decodeValue(decoder)
}

func syntaxError(data []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return errors.New("is not JSON")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("is empty: expected a JSON object")
	}
	before := data[:min(max(int(syntax.Offset)-1, 0), len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("is not JSON: line %d, column %d: %w", line, column, err)
}

func decodeValue(decoder *json.Decoder) (value, error) {
	token, err := decoder.Token()
	if err != nil {
		return value{}, err
	}
	switch token := token.(type) {
	case nil:
		return value{kind: kindNull}, nil
	case bool:
		return value{kind: kindBoolean}, nil
	case json.Number:
		return value{kind: kindNumber, text: token.String()}, nil
	case string:
		return value{kind: kindText, text: token}, nil
	case json.Delim:
		return decodeNested(decoder, token)
	}
	return value{}, fmt.Errorf("unknown token %T", token)
}

func decodeNested(decoder *json.Decoder, opened json.Delim) (value, error) {
	nested := value{kind: kindList}
	if opened == '{' {
		nested.kind = kindObject
	}
	for decoder.More() {
		var name string
		if nested.kind == kindObject {
			key, err := decoder.Token()
			if err != nil {
				return value{}, err
			}
			name, _ = key.(string)
		}
		item, err := decodeValue(decoder)
		if err != nil {
			return value{}, err
		}
		if nested.kind == kindObject {
			nested.members = append(nested.members, member{name: name, value: item})
		} else {
			nested.items = append(nested.items, item)
		}
	}
	_, err := decoder.Token()
	return nested, err
}
