package input

import (
	"strings"
	"testing"
)

func BenchmarkTextListOfAnchors(b *testing.B) {
	anchor := "30402:" + pubkeyA + ":garden-room"
	raw := []byte(`{"anchors":["` + anchor + strings.Repeat(`","`+anchor, 19) + `"]}`)
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(raw)
		if anchors := r.Property("anchors", "anchor").Required().Anchors(); len(anchors) != 20 {
			b.Fatal(r.Err())
		}
	}
}
