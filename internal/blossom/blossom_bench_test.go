package blossom_test

import (
	"testing"

	"hostr-daemon/internal/blossom"
)

func BenchmarkNewBlob(b *testing.B) {
	content := make([]byte, 100<<20)
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		blossom.NewBlob(content, "image/png", "")
	}
}

func BenchmarkUpload(b *testing.B) {
	server := startServer(b, nil)
	client := newClient(b, server.URL)
	for name, size := range map[string]int{"small": 11, "100MiB": 100 << 20} {
		blob := blossom.NewBlob(make([]byte, size), "image/png", "")
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Upload(b.Context(), blob, localSigner{accountKey}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
