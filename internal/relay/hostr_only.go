package relay

import "slices"

// hostrOnlyKinds never leave for, and are never read from, any relay but the
// Hostr relay (spec 82 §3, set H).
var hostrOnlyKinds = []int{
	8, 13, 16, 1326, 1327, 1328, 1329, 10017, 17388, 17389, 30009, 30010, 30302, 30303, 30402, 32122,
}

// blockedRelay is refused unless it is the configured Hostr relay: user relay
// lists in production were once polluted with it (spec 82 §1).
const blockedRelay = "wss://relay.hostr.development"

func hasHostrOnlyKind(kinds []int) bool {
	return slices.ContainsFunc(kinds, func(kind int) bool { return slices.Contains(hostrOnlyKinds, kind) })
}

// guard returns the relays that may see the kinds: the Hostr relay alone as soon
// as one of them is hostr-only, else the list as given. nil stands for the
// default relays and so does an empty list. URLs are clean.
func guard(kinds []int, relays []string, hostrRelay string) []string {
	if len(relays) == 0 {
		relays = nil
	}
	if !hasHostrOnlyKind(kinds) || consistsOf(relays, hostrRelay) {
		return relays
	}
	if hostrRelay == "" {
		return []string{}
	}
	return []string{hostrRelay}
}

func consistsOf(relays []string, only string) bool {
	return len(relays) > 0 && !slices.ContainsFunc(relays, func(relay string) bool { return relay != only })
}

// cleanList cleans each URL and drops unusable, blocked and repeated ones.
func cleanList(relays []string, hostrRelay string) []string {
	var cleaned []string
	for _, raw := range relays {
		url, ok := CleanURL(raw)
		blocked := url == blockedRelay && url != hostrRelay
		if ok && !blocked && !slices.Contains(cleaned, url) {
			cleaned = append(cleaned, url)
		}
	}
	return cleaned
}
