package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"hostr-daemon/internal/jsontext"
)

// appendText and appendString append a JSON string.
func appendText(dst, text []byte) []byte { return jsontext.AppendQuoted(dst, text) }

func appendString(dst []byte, text string) []byte { return jsontext.AppendQuotedString(dst, text) }

func appendBool(dst []byte, value bool) []byte {
	if value {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

var encodeBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode returns the value as one line of safe JSON text.
func encode(value any) ([]byte, error) {
	if raw, ok := value.(json.RawMessage); ok {
		return encodeRaw(raw)
	}
	buffer := encodeBuffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= chunkSize {
			buffer.Reset()
			encodeBuffers.Put(buffer)
		}
	}()
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(buffer.Bytes(), []byte{'\n'})
	return jsontext.AppendSafe(make([]byte, 0, len(text)), text), nil
}

// encodeRaw checks text that claims to be JSON.
func encodeRaw(raw json.RawMessage) ([]byte, error) {
	span, err := jsontext.Document(raw)
	if err != nil {
		return nil, err
	}
	text := span.Of(raw)
	if bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			return nil, err
		}
		text = compact.Bytes()
	}
	return jsontext.AppendSafe(make([]byte, 0, len(text)), text), nil
}

// errNoObject is returned for a value that must be an object and is not.
var errNoObject = errors.New("it does not encode to a JSON object")

// encodeObject is encode for a value that must be an object. A panic of the value's
// own code is returned as an error.
func encodeObject(value any) (text []byte, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			text, err = nil, fmt.Errorf("encoding it panicked: %v", recovered)
		}
	}()
	if text, err = encode(value); err != nil {
		return nil, err
	}
	if text[0] != '{' {
		return nil, errNoObject
	}
	return text, nil
}
