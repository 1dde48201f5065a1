package imagesource

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/mediatype"
)

// transport is the way to the servers of images: straight, since a proxy would dial
// addresses that nobody checks, and without decompression, since a small answer could
// unfold into one of any size.
func (r *Reader) transport() *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            r.dial,
		DialTLSContext:         r.dialTLS,
		DisableCompression:     true,
		MaxIdleConns:           8,
		MaxConnsPerHost:        8,
		IdleConnTimeout:        15 * time.Second,
		ResponseHeaderTimeout:  30 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// errPrivate is a dial that was not made.
var errPrivate = errors.New("the address is in a private or reserved network")

// dial connects to the host and port of a URL. The address is checked when the socket
// is about to connect to it, after every look-up, so that a name cannot have another
// address when it is used than when it was checked.
func (r *Reader) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, Resolver: r.resolver}
	if r.trusts(hostPort) {
		return dialer.DialContext(ctx, network, hostPort)
	}
	var refused atomic.Bool // several addresses of a name may be tried at once
	dialer.Control = func(_, dialled string, _ syscall.RawConn) error {
		address, err := netip.ParseAddrPort(dialled)
		if err != nil || r.refuses(address.Addr()) {
			refused.Store(true)
			return errPrivate
		}
		return nil
	}
	connection, err := dialer.DialContext(ctx, network, hostPort)
	if err != nil && refused.Load() {
		return nil, errPrivate
	}
	return connection, err
}

func (r *Reader) dialTLS(ctx context.Context, network, hostPort string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	plain, err := r.dial(ctx, network, hostPort)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	secured := tls.Client(plain, r.tls(host))
	if err := secured.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, err
	}
	return secured, nil
}

func (r *Reader) trusts(hostPort string) bool { return r.trusted[strings.ToLower(hostPort)] }

// dialAddress is what a URL makes net/http dial.
func dialAddress(target *url.URL) string {
	port := "80"
	if strings.EqualFold(target.Scheme, "https") {
		port = "443"
	}
	return strings.ToLower(net.JoinHostPort(target.Hostname(), cmp.Or(target.Port(), port)))
}

var errNoHTTP = errors.New("a redirect leads to a URL that is neither http:// nor https://")

func checkRedirect(request *http.Request, via []*http.Request) error {
	const maxRedirects = 5
	request.Header.Del("Referer") // one host's URL, with what its query holds, is not the next one's business
	switch {
	case request.URL.Scheme != "http" && request.URL.Scheme != "https":
		return errNoHTTP
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	default:
		return nil
	}
}

var (
	errTooLarge = errors.New("the image is too large")
	errTooSlow  = errors.New("the download took too long")
)

// download fetches the image. The source comes back with what the server declares.
func (r *Reader) download(ctx context.Context, source Source, allow func(int) error) ([]byte, Source, error) {
	limited, cancel := context.WithTimeoutCause(ctx, r.timeout, errTooSlow)
	defer cancel()
	content, declared, err := r.get(limited, source.target, allow)
	if err != nil {
		return nil, source, r.downloadFailure(ctx, limited, source, err)
	}
	if declared != "" {
		source.filename = "" // the extension counts where the server says nothing
		source.declared = cmp.Or(source.declared, mediatype.Image(declared))
	}
	return content, source, nil
}

// statusError is an answer outside 200..299.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("HTTP %d", int(s)) }

// get returns the body of an answer and its Content-Type.
func (r *Reader) get(ctx context.Context, target *url.URL, allow func(int) error) (content []byte, declared string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("User-Agent", r.userAgent) // an empty one is not sent
	response, err := r.http.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode/100 != 2:
		return nil, "", statusError(response.StatusCode)
	case response.ContentLength > MaxBytes:
		return nil, "", errTooLarge
	}
	content, err = readUpToLimit(response.Body, response.ContentLength, allow)
	return content, response.Header.Get("Content-Type"), err
}

// refusedByCaller marks what the caller's allow answered.
type refusedByCaller struct{ error }

func (r refusedByCaller) Unwrap() error { return r.error }

const (
	// firstRoom is the room that is made before a source has shown that it sends
	// anything, nextRoom that from which on it is doubled.
	firstRoom = 32 << 10
	nextRoom  = 1 << 20
)

// readUpToLimit reads everything, or one byte more than MaxBytes and then fails. length
// is how much there will be, -1 where nobody says. What is allowed at any time is the
// room that was made, copies included; in the end it is the capacity of the content.
func readUpToLimit(from io.Reader, length int64, allow func(int) error) ([]byte, error) {
	var content []byte
	for {
		if len(content) == cap(content) {
			var err error
			if content, err = withMoreRoom(content, length, allow); err != nil {
				return nil, err
			}
		}
		n, err := from.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		switch {
		case len(content) > MaxBytes:
			return nil, errTooLarge
		case errors.Is(err, io.EOF):
			return content, nil
		case err != nil:
			return nil, err
		}
	}
}

// withMoreRoom copies the content to where there is more room: at last, as soon as there
// is reason to believe it, exactly as much as was announced and one byte, which the end
// of the source is found with.
func withMoreRoom(content []byte, length int64, allow func(int) error) ([]byte, error) {
	room := firstRoom
	switch {
	case len(content) == firstRoom:
		room = nextRoom
	case len(content) > firstRoom:
		room = 2 * len(content)
	}
	if announced := int(min(length, MaxBytes)) + 1; announced > len(content) && (announced < room || len(content) >= nextRoom) {
		room = announced
	}
	room = min(room, MaxBytes+1)
	if err := allow(room); err != nil {
		return nil, refusedByCaller{err}
	}
	roomier := append(make([]byte, 0, room), content...)
	if copied := cap(content); copied > 0 {
		if err := allow(-copied); err != nil {
			return nil, refusedByCaller{err}
		}
	}
	return roomier, nil
}

// downloadFailure says what became of a download that ended with err.
func (r *Reader) downloadFailure(ctx, limited context.Context, source Source, err error) error {
	var refused refusedByCaller
	host := source.target.Hostname()
	switch {
	case errors.As(err, &refused):
		return refused.error
	case ctx.Err() != nil:
		return fmt.Errorf("the download of the image was given up: %w", context.Cause(ctx))
	case errors.Is(err, errPrivate):
		return privateTarget(source.target)
	case errors.Is(err, errNoHTTP):
		return fault.New(fault.InvalidImageURL, "The URL of the image, on %s, is no good: %w.", host, errNoHTTP).At("url").WithHint(waysThatWork)
	case errors.Is(err, errTooLarge):
		return tooLarge(source)
	case limited.Err() != nil:
		return downloadFailed(host, fmt.Sprintf("it took longer than %s", r.timeout), err)
	default:
		return downloadFailed(host, reason(err), err)
	}
}

func downloadFailed(host, reason string, cause error) *fault.Error {
	failure := fault.New(fault.ImageDownloadFailed, "The download of the image from %s failed: %s.", host, reason).At("url").
		WithHint("Check that the URL opens in a browser without signing in, or upload the image with hostr_images_upload.")
	failure.Cause = cause
	return failure
}

func tooLarge(source Source) *fault.Error {
	return fault.New(fault.ImageTooLarge, "The image is larger than %d MiB.", MaxBytes>>20).At(source.property).
		WithHint("Make the image smaller: about 2000 pixels a side are enough.")
}

// reason is the error without URLs and addresses, which callers need not learn.
func reason(err error) string {
	var lookup *net.DNSError
	var connection *net.OpError
	var request *url.Error
	switch {
	case errors.As(err, &lookup):
		return "the name of the host cannot be resolved"
	case errors.As(err, &connection):
		err = connection.Err
	case errors.As(err, &request):
		err = request.Err
	}
	const longest = 200
	text := strings.ToValidUTF8(err.Error(), "")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
