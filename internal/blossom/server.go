package blossom

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// server holds the URLs of one configured server, without query, fragment and user
// information, all of which may be shown.
type server struct {
	base   string
	upload string
	mirror string
}

const uploadPath = "/upload"

func parseServer(configured string) (server, *refusal) {
	parsed, err := url.Parse(configured)
	if err != nil || !isHTTP(parsed) {
		return server{base: showable(configured), upload: showable(configured)},
			&refusal{err: "the configured server is no HTTP or HTTPS URL"}
	}
	path := strings.TrimRight(parsed.EscapedPath(), "/")
	base := parsed.Scheme + "://" + parsed.Host + strings.TrimRight(strings.TrimSuffix(path, uploadPath), "/")
	return server{base: base, upload: base + uploadPath, mirror: base + "/mirror"}, nil
}

func isHTTP(parsed *url.URL) bool {
	scheme := strings.ToLower(parsed.Scheme)
	return (scheme == "http" || scheme == "https") && parsed.Host != ""
}

// showable cuts what may hold a password off a text that is no URL.
func showable(configured string) string {
	if _, behind, found := strings.Cut(configured, "@"); found {
		configured = behind
	}
	shown, _, _ := strings.Cut(configured, "?")
	return shown
}

// keepMethod follows the redirects that send the blob again, and no others: after
// 301, 302 and 303 a client asks with GET, and what that finds is no upload.
func keepMethod(request *http.Request, via []*http.Request) error {
	const maxRedirects = 5
	request.Header.Del("Referer") // one server's URL is not the next one's business
	switch {
	case request.Method != via[0].Method:
		return http.ErrUseLastResponse
	case len(via) > maxRedirects:
		return errors.New("too many redirects")
	default:
		return nil
	}
}
