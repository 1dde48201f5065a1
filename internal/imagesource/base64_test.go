package imagesource_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"hostr-daemon/internal/imagesource"
)

func TestDecodeBase64(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " \n\t": "", "QQ==": "A", "QUI=": "AB", "QUJD": "ABC", "QUJDRA==": "ABCD",
		" Q U\nJ\r\nD\tR\v\fA=\n= ":          "ABCD",
		"Q\u00a0U\u2003J\u2028D\ufeff\u3000": "ABC",
		"+/+/":                               "\xfb\xff\xbf", "-_-_": "\xfb\xff\xbf", "-/+_": "\xfb\xff\xbf", "_w==": "\xff", "__8=": "\xff\xff",
		"aGVsbG8gaG9zdHI=": "hello hostr",
	} {
		for _, pieceSize := range []int{4, 8, 16 << 10} {
			got, err := imagesource.DecodeBase64InPieces(text, pieceSize)
			if err != nil || string(got) != want {
				t.Errorf("%q in pieces of %d is %q, %v; want %q", text, pieceSize, got, err, want)
			}
		}
	}
}

func TestDecodeBase64Refuses(t *testing.T) {
	t.Parallel()
	const breaksOff, wrong = "breaks off after", "is wrong at character"
	for text, want := range map[string]string{
		"Q": breaksOff + " 1 ", "QQ": breaksOff + " 2 ", "QUI": breaksOff + " 3 ", "QUJDR": breaksOff + " 5 ",
		"QUJDRA": breaksOff + " 6 ", "QUJDREU": breaksOff + " 7 ", "QQ=": breaksOff + " 3 ", "QQ \n": breaksOff + " 2 ",
		"=": wrong + " 1 ", "====": wrong + " 1 ", "Q===": wrong + " 2 ", "QQ==QUJD": wrong + " 5 ", "QUJDQQ==Q": wrong + " 9 ",
		"QUJ=": wrong, "QR==": wrong, // bits behind the last byte
		"QU!D": wrong + " 3 ", "!": wrong + " 1 ", "QUJDR!": wrong + " 6 ", "Q U,D": wrong + " 3 ", "QU\x00D": wrong + " 3 ",
		"QUJDQUé": wrong + " 7 ", "QUJD\xff": wrong + " 5 ", "QUJD%3D": wrong + " 5 ", "QUI=\n=": wrong + " 5 ",
		"data:image/png;base64,QUJD": wrong + " 5 ",
	} {
		for _, pieceSize := range []int{4, 8, 16 << 10} {
			got, err := imagesource.DecodeBase64InPieces(text, pieceSize)
			var failure *imagesource.Base64Error
			if !errors.As(err, &failure) || got != nil {
				t.Errorf("%q in pieces of %d is %q, %v", text, pieceSize, got, err)
				continue
			}
			if !strings.Contains(failure.Message, want) {
				t.Errorf("%q in pieces of %d: %s; want %q", text, pieceSize, failure.Message, want)
			}
			if named := strings.Contains(failure.Hint, "data:"); named != strings.HasPrefix(text, "data:") {
				t.Errorf("%q: hint %q", text, failure.Hint)
			}
		}
	}
}

// The decoder agrees with the library's on the text without white space, in
// whatever pieces it works.
func FuzzBase64(f *testing.F) {
	for _, seed := range []string{"", "QQ==", "QUJDRA==", " Q U\nJ\r\nD-_8=", "QQ=\n=Q", "QUJ=", "\u00a0QUJD\ufeff", "====", "\xff", "QU\x00D"} {
		f.Add(seed, byte(1))
	}
	f.Fuzz(func(t *testing.T, text string, groups byte) {
		bare := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsSpace(r) || r == '\ufeff':
				return -1
			case r == '-':
				return '+'
			case r == '_':
				return '/'
			}
			return r
		}, text)
		want, wrong := base64.StdEncoding.Strict().DecodeString(bare)
		got, err := imagesource.DecodeBase64InPieces(text, (int(groups)+1)*4)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%q: %v, the library says %v", text, err, wrong)
		}
		if wrong == nil && !bytes.Equal(got, want) {
			t.Fatalf("%q is %q, want %q", text, got, want)
		}
	})
}

// BenchmarkDecode decodes a file of 100 MB. B/op beside the
// size of the file shows that it is in memory once.
func BenchmarkDecode(b *testing.B) {
	content := make([]byte, 100_000_000)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(content)
	standard := base64.StdEncoding.EncodeToString(content)
	for _, test := range []struct{ name, text string }{
		{"standard", standard},
		{"URL-safe", base64.URLEncoding.EncodeToString(content)},
		{"in lines", inLines(standard)},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				decoded, err := imagesource.DecodeBase64InPieces(test.text, 16<<10)
				if err != nil || len(decoded) != len(content) {
					b.Fatal(len(decoded), err)
				}
			}
		})
	}
}

// inLines breaks a text as MIME does.
func inLines(text string) string {
	var lines strings.Builder
	lines.Grow(len(text) + len(text)/38 + 2)
	for len(text) > 76 {
		lines.WriteString(text[:76])
		lines.WriteString("\r\n")
		text = text[76:]
	}
	lines.WriteString(text)
	return lines.String()
}
