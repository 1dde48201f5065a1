package catalog

import "testing"

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadAndDescribe(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		loaded, err := Load()
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(loaded.Describe())))
	}
}

func BenchmarkVisible(b *testing.B) {
	loaded, err := Load()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		loaded.Visible("", nil)
	}
}
