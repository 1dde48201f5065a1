package relaylists

import (
	"slices"
	"strings"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/relay"
)

const (
	// maxRelays is how many relays count on each side of a list. NIP-65 asks for two
	// to four; a longer list is a mistake or an attack on whoever publishes to it.
	maxRelays = 20
	// maxURLBytes is the length of a URL above which it is left out.
	maxURLBytes = 256
)

// List holds the relays of one person (NIP-65): cleaned URLs, each there once, in
// the order of the event's tags, at most 20 of each.
type List struct {
	// Write is where the person publishes: others read there.
	Write []string
	// Read is where the person looks for what others address to them.
	Read []string
}

// parse reads the r tags of a kind 10002 event: one without the marker read or
// write counts for both. Unusable URLs are dropped.
func parse(tags nostr.Tags) List {
	var list List
	for _, tag := range tags {
		if len(tag) < 2 || tag[0] != "r" {
			continue
		}
		url, usable := relay.CleanURL(tag[1])
		if !usable || len(url) > maxURLBytes {
			continue
		}
		marker := markerOf(tag)
		if marker != "write" {
			list.Read = add(list.Read, url)
		}
		if marker != "read" {
			list.Write = add(list.Write, url)
		}
	}
	return list
}

func markerOf(tag nostr.Tag) string {
	if len(tag) < 3 {
		return ""
	}
	return strings.ToLower(strings.TrimSpace(tag[2]))
}

func add(urls []string, url string) []string {
	if len(urls) == maxRelays || slices.Contains(urls, url) {
		return urls
	}
	return append(urls, url)
}

func (l List) usable() bool { return len(l.Write)+len(l.Read) > 0 }

func (l List) clone() List { return List{Write: slices.Clone(l.Write), Read: slices.Clone(l.Read)} }
