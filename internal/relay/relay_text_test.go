package relay

import (
	"strings"
	"testing"
)

func TestRelayText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain": "plain", "two\nlines\t": "two lines", "\x1b[31mred": "[31mred", "bad \xff byte": "bad   byte", "Zürich 東京": "Zürich 東京",
		strings.Repeat("x", 299) + "yz": strings.Repeat("x", 299) + "y…", strings.Repeat("ü", 300): strings.Repeat("ü", 300),
	} {
		if got := relayText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
