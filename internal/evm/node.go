package evm

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"hostr-daemon/internal/redact"
)

// node is one JSON-RPC endpoint of the chain.
type node struct {
	url string
	// host is what of the URL may be shown.
	host string
	// keys are the parts of the URL that may be an API key.
	keys []string
	// checked is true once the node has reported the right chain id.
	checked atomic.Bool
}

// parseNode reads a URL; its errors do not repeat it.
func parseNode(text string) (*node, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, errors.New("an RPC URL is no whole http or https URL")
	}
	parsed.Fragment = ""
	n := &node{url: parsed.String(), host: parsed.Host}
	n.keys = strings.FieldsFunc(parsed.Path+"/"+parsed.RawQuery, func(r rune) bool { return strings.ContainsRune("/&=", r) })
	if password, ok := parsed.User.Password(); ok {
		n.keys = append(n.keys, password)
	}
	const shortestKey = 8
	n.keys = slices.DeleteFunc(n.keys, func(part string) bool { return len(part) < shortestKey })
	return n, nil
}

// shown makes what a node says fit to be shown: one line, bounded, without secrets
// and without the node's own key.
func (n *node) shown(text string) string {
	const maxBytes, maxRunes = 4096, 300
	text = strings.ToValidUTF8(text[:min(len(text), maxBytes)], "")
	for _, key := range n.keys {
		text = strings.ReplaceAll(text, key, redact.Redacted)
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, redact.Text(text))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes]) + "…"
	}
	return text
}

// keepRedirects follows none: a request, and the key in its URL, is for the node
// that was configured.
func keepRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
