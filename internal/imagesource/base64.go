package imagesource

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pieceSize is how many characters are decoded at a time, a multiple of four: few
// enough to stay in the processor's first cache.
const pieceSize = 16 << 10

// Base64Error says where a text is no base64.
type Base64Error struct {
	// Message is a sentence that names the place, Hint the form that is accepted,
	// or "".
	Message string
	Hint    string
}

// Error returns the message.
func (e *Base64Error) Error() string { return e.Message }

// DecodeBase64 decodes the standard and the URL-safe alphabet with padding; white
// space anywhere is ignored (spec 20 §11, 40 §9.2). A text of 134 MB is read where it
// lies and costs one allocation, that of the result. The only error is *Base64Error.
func DecodeBase64(text string) ([]byte, error) {
	return decodeInPieces(text, make([]byte, pieceSize))
}

func decodeInPieces(text string, piece []byte) ([]byte, error) {
	decoder := base64Decoder{text: text, decoded: make([]byte, 0, len(text)/4*3)}
	decoder.decodePlain(piece)
	if failure := decoder.decodeRest(piece); failure != nil {
		if start := strings.TrimSpace(text[:min(len(text), 100)]); len(start) >= 5 && strings.EqualFold(start[:5], "data:") {
			failure.Hint = "Send the base64 text alone, without the data:…;base64, in front of it."
		}
		return nil, failure
	}
	return decoder.decoded, nil
}

// strict refuses texts whose last characters hold bits that belong to no byte.
var strict = base64.StdEncoding.Strict()

type base64Decoder struct {
	// text is what is left to decode, decoded what came out so far.
	text    string
	decoded []byte
	// taken counts the characters decoded, without white space.
	taken int
	// ended is set behind padding: nothing may follow.
	ended bool
}

// free is the room behind what is decoded. It was computed from the whole text and
// is always enough.
func (d *base64Decoder) free() []byte { return d.decoded[len(d.decoded):cap(d.decoded)] }

func (d *base64Decoder) took(characters, bytes int) {
	d.decoded = d.decoded[:len(d.decoded)+bytes]
	d.taken += characters
}

// decodePlain decodes whole pieces as they are, for as long as the text is in the
// standard alphabet and without white space.
func (d *base64Decoder) decodePlain(piece []byte) {
	for len(d.text) >= len(piece) {
		copy(piece, d.text)
		n, err := strict.Decode(d.free(), piece)
		if err != nil || n < len(piece)/4*3 {
			return
		}
		d.took(len(piece), n)
		d.text = d.text[len(piece):]
	}
}

// decodeRest decodes what is left, character by character.
func (d *base64Decoder) decodeRest(piece []byte) *Base64Error {
	for {
		filled, failure := d.fill(piece)
		if failure != nil || filled == 0 {
			return failure
		}
		if failure := d.decode(piece[:filled]); failure != nil {
			return failure
		}
	}
}

// fill takes characters off the text until the piece is full: without white space,
// in the standard alphabet.
func (d *base64Decoder) fill(piece []byte) (filled int, failure *Base64Error) {
	for filled < len(piece) && len(d.text) > 0 {
		size := 1
		switch character := standard[d.text[0]]; character {
		case skipped:
		case foreign:
			var r rune
			r, size = utf8.DecodeRuneInString(d.text)
			if !unicode.IsSpace(r) && r != byteOrderMark {
				return 0, wrongCharacter(d.taken + filled)
			}
		default:
			piece[filled] = character
			filled++
		}
		d.text = d.text[size:]
	}
	return filled, nil
}

const byteOrderMark = '\uFEFF'

// Values of standard that stand for no character of base64.
const (
	// skipped marks white space.
	skipped byte = 0xfe
	// foreign marks a byte that is not ASCII.
	foreign byte = 0xff
)

// standard maps each byte to its character in the standard alphabet. A byte of no
// alphabet stays what it is, for the decoder to refuse.
var standard = func() (table [256]byte) {
	for b := range table {
		table[b] = byte(b)
		if b >= utf8.RuneSelf {
			table[b] = foreign
		}
	}
	for _, space := range "\t\n\v\f\r " {
		table[space] = skipped
	}
	table['-'], table['_'] = '+', '/'
	return table
}()

func (d *base64Decoder) decode(piece []byte) *Base64Error {
	if d.ended {
		return wrongCharacter(d.taken)
	}
	n, err := strict.Decode(d.free(), piece)
	if err != nil {
		return d.refuse(piece, err)
	}
	d.took(len(piece), n)
	d.ended = n < len(piece)/4*3
	return nil
}

// refuse says what the library did not like about a piece.
func (d *base64Decoder) refuse(piece []byte, err error) *Base64Error {
	at := len(piece)
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) {
		at = int(corrupt)
	}
	if !breaksOff(piece, at) {
		return wrongCharacter(d.taken + at)
	}
	return &Base64Error{
		Message: fmt.Sprintf("The base64 text of the file breaks off after %d characters, in the middle of a group of four.", d.taken+len(piece)),
		Hint:    "Send the whole text, with its padding (=) at the end.",
	}
}

// breaksOff tells that the library stopped at a position because there is no more,
// not because of what stands there.
func breaksOff(piece []byte, at int) bool {
	if at >= len(piece) {
		return true
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	wrong := slices.ContainsFunc(piece[at:], func(b byte) bool { return strings.IndexByte(alphabet, b) < 0 })
	behindPadding := at > 0 && piece[at-1] == '='
	return len(piece)-at < 4 && !wrong && !behindPadding
}

// wrongCharacter names a position, counted from 0 without white space.
func wrongCharacter(position int) *Base64Error {
	return &Base64Error{Message: fmt.Sprintf("The base64 text of the file is wrong at character %d (white space not counted).", position+1)}
}
