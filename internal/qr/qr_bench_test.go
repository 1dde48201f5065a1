package qr_test

import (
	"testing"

	"hostr-daemon/internal/qr"
)

func BenchmarkSignInURI(b *testing.B) {
	for name, draw := range map[string]func(string) (string, error){"png": qr.PNGDataURI, "terminal": qr.Terminal} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := draw(nostrConnect); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
