package relay

import (
	"strings"
	"unicode"
)

// maxRelayText bounds what of a relay's words reaches results and logs, in runes.
const maxRelayText = 300

// relayText makes a relay's words fit to be shown: one line, bounded, printable.
func relayText(text string) string {
	var out strings.Builder
	runes := 0
	for _, r := range text {
		if runes == maxRelayText {
			return strings.TrimSpace(out.String()) + "…"
		}
		if !unicode.IsGraphic(r) || r == unicode.ReplacementChar {
			r = ' '
		}
		out.WriteRune(r)
		runes++
	}
	return strings.TrimSpace(out.String())
}

// reasonOf writes an error's text for results and logs.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return relayText(strings.TrimSpace(err.Error()))
}
