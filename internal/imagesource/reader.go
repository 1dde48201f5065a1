package imagesource

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/mediatype"
)

const (
	// MaxBytes is the largest download or file that is read; exactly that is allowed.
	MaxBytes = 20 << 20
	// DownloadTimeout is how long one download may take, redirects included.
	DownloadTimeout = 60 * time.Second
)

// Config says what a reader may read.
type Config struct {
	// AllowFiles lets references name files of this machine.
	AllowFiles bool
	// AllowPrivateHosts lets URLs lead into private networks.
	AllowPrivateHosts bool
	// TrustedServers are base URLs whose host and port may be in a private network in
	// any case.
	TrustedServers []string
	// TLS is the rule for the certificate of a host, a name or an IP address; nil means
	// the usual one.
	TLS func(host string) *tls.Config
	// Resolver looks names up; nil means the machine's.
	Resolver *net.Resolver
	// UserAgent is sent with each request, if it is not empty.
	UserAgent string
}

// Reader reads images. It keeps no state but idle connections and is safe for
// concurrent use.
type Reader struct {
	files     bool
	trusted   map[string]bool // host:port
	refuses   func(netip.Addr) bool
	resolver  *net.Resolver
	tls       func(host string) *tls.Config
	http      *http.Client
	userAgent string
	timeout   time.Duration
}

// New returns a reader; it touches no network.
func New(config Config) *Reader {
	r := &Reader{
		files:     config.AllowFiles,
		trusted:   map[string]bool{},
		refuses:   isPrivate,
		resolver:  config.Resolver,
		tls:       config.TLS,
		userAgent: config.UserAgent,
		timeout:   DownloadTimeout,
	}
	if r.tls == nil {
		r.tls = func(host string) *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host} }
	}
	if config.AllowPrivateHosts {
		r.refuses = func(netip.Addr) bool { return false }
	}
	for _, server := range config.TrustedServers {
		if parsed, err := url.Parse(strings.TrimSpace(server)); err == nil && parsed.Hostname() != "" {
			r.trusted[dialAddress(parsed)] = true
		}
	}
	r.http = &http.Client{CheckRedirect: checkRedirect, Transport: r.transport()}
	return r
}

// Close closes the idle connections.
func (r *Reader) Close() { r.http.CloseIdleConnections() }

// Image is an image that was read.
type Image struct {
	// Content has the capacity that allow was asked for.
	Content []byte
	// MIME is the media type, image/…: the declared one, else the recognised one.
	MIME string
}

// Read reads a source that Resolve returned. allow is asked before each further number
// of bytes is taken of the memory, copies included, and an error of it ends the reading;
// a negative number gives some back. After a failure nothing more is given back. It must
// be safe for concurrent use where Read is.
//
// Errors are image_download_failed, image_too_large and, for a URL that turns out to
// lead into a private network, invalid_image_url (path url or path);
// invalid_image_base64, image_not_found and, for what is empty or no image,
// invalid_image; the error of allow, and the cause of ctx.
func (r *Reader) Read(ctx context.Context, source Source, allow func(bytes int) error) (Image, error) {
	var content []byte
	var err error
	switch source.Kind {
	case KindURL:
		content, source, err = r.download(ctx, source, allow)
	case KindPath:
		content, err = readFile(source, allow)
	default:
		content, err = decode(source.encoded, allow)
	}
	if err != nil {
		return Image{}, err
	}
	if len(content) == 0 {
		return Image{}, fault.New(fault.InvalidImage, "The image is empty.").WithHint("Send a PNG, JPEG, WebP, GIF or AVIF image.")
	}
	return recognise(content, source)
}

// recognise lets nothing pass that does not show itself as an image.
func recognise(content []byte, source Source) (Image, error) {
	shown := mediatype.Image(mediatype.Sniff(content))
	declared := source.declared
	if declared == "" && shown == "" && strings.EqualFold(path.Ext(source.filename), ".svg") {
		declared = mediatype.SVG
	}
	switch {
	case shown != "" && declared != "":
		return Image{Content: content, MIME: declared}, nil
	case shown != "":
		return Image{Content: content, MIME: shown}, nil
	case declared == mediatype.SVG && mediatype.IsSVG(content):
		return Image{Content: content, MIME: mediatype.SVG}, nil
	default:
		return Image{}, fault.New(fault.InvalidImage, "The file is no image that is recognised by its content.").
			WithHint("Send a PNG, JPEG, WebP, GIF, AVIF, HEIC or TIFF image, or SVG declared as image/svg+xml. A web page that shows an image is none.")
	}
}

// decode decodes base64 text, which is in memory already and so has no limit of its
// own.
func decode(text string, allow func(bytes int) error) ([]byte, error) {
	if err := allow(len(text) / 4 * 3); err != nil {
		return nil, err
	}
	content, err := DecodeBase64(text)
	var wrong *Base64Error
	if errors.As(err, &wrong) {
		return nil, fault.New(fault.InvalidImageBase64, "%s", wrong.Message).WithHint(wrong.Hint)
	}
	return content, err
}
