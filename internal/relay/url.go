package relay

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// CleanURL returns the one spelling of a relay URL that is used as key, in
// results and in AUTH events, or false when the text is no usable relay URL
// (spec 82 §1.1). Cleaning a clean URL returns it unchanged.
func CleanURL(raw string) (string, bool) {
	scheme, rest, found := strings.Cut(strings.TrimSpace(raw), "://")
	scheme = strings.ToLower(scheme)
	if !found || scheme != "ws" && scheme != "wss" {
		return "", false
	}
	rest = strings.TrimLeft(rest, "/")
	authority, tail := splitAt(rest, "/?#")
	host, ok := cleanAuthority(scheme, authority)
	if !ok {
		return "", false
	}
	path, suffix := splitAt(tail, "?#")
	cleaned := scheme + "://" + host + cleanPath(path) + normalizePercent(suffix)
	return cleaned, cleanForm.MatchString(cleaned) && strings.IndexFunc(cleaned, unicode.IsSpace) < 0
}

var cleanForm = regexp.MustCompile(
	`^wss?://[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(:[0-9]{1,5})?(/(?s:.*))?$`)

// splitAt cuts text before the first of the characters.
func splitAt(text, characters string) (before, after string) {
	if at := strings.IndexAny(text, characters); at >= 0 {
		return text[:at], text[at:]
	}
	return text, ""
}

// cleanAuthority drops user info and a default port and lower-cases the host.
func cleanAuthority(scheme, authority string) (string, bool) {
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	host, portText, _ := strings.Cut(authority, ":")
	host = strings.ToLower(host)
	if host == "" || portText == "" {
		return host, host != ""
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return "", false
	}
	if scheme == "wss" && port == 443 || scheme == "ws" && port == 80 {
		return host, true
	}
	return host + ":" + strconv.FormatUint(port, 10), true
}

// cleanPath resolves dot segments and removes trailing slashes: all of them, so
// that cleaning twice changes nothing.
func cleanPath(path string) string {
	if path == "" {
		return ""
	}
	segments := strings.Split(normalizePercent(path)[1:], "/")
	kept := make([]string, 0, len(segments)+1)
	for at, segment := range segments {
		last := at == len(segments)-1
		switch segment {
		case ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, segment)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return strings.TrimRight("/"+strings.Join(kept, "/"), "/")
}

// normalizePercent decodes escapes of unreserved characters (RFC 3986 §2.3),
// writes other escapes in upper case and escapes a percent sign that starts none.
func normalizePercent(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var out strings.Builder
	for at := 0; at < len(text); at++ {
		if text[at] != '%' {
			out.WriteByte(text[at])
			continue
		}
		value, err := strconv.ParseUint(text[at+1:min(at+3, len(text))], 16, 8)
		if err != nil || at+3 > len(text) {
			out.WriteString("%25")
			continue
		}
		if isUnreserved(byte(value)) {
			out.WriteByte(byte(value))
		} else {
			out.WriteString(strings.ToUpper(text[at : at+3]))
		}
		at += 2
	}
	return out.String()
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
