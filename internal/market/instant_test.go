package market_test

import (
	"testing"
	"time"

	"hostr-daemon/internal/market"
)

func FuzzParseInstant(f *testing.F) {
	for _, seed := range []string{"2026-05-04", "20260504T1530", "2026-05-04T15:30:00.123456789+02:00", "2026-02-29", "+002026-05-04 23Z", "0000-01-01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		instant, err := market.ParseInstant(text)
		if err != nil {
			return
		}
		if instant.Year() < 1 || instant.Year() > 9999 || instant.Location() != time.UTC || instant.Nanosecond()%1000 != 0 {
			t.Fatalf("%q gave %v", text, instant)
		}
		if again, err := market.ParseInstant(instant.Format(time.RFC3339Nano)); err != nil || !again.Equal(instant) {
			t.Fatalf("%q gave %v, written and read again %v (%v)", text, instant, again, err)
		}
	})
}

func BenchmarkParseInstant(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := market.ParseInstant("2026-05-04T00:00:00Z"); err != nil {
			b.Fatal(err)
		}
	}
}
