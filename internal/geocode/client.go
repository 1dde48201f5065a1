package geocode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/flight"
)

const (
	// DefaultBaseURL is the public Nominatim server.
	DefaultBaseURL = "https://nominatim.openstreetmap.org/search"
	// DefaultUserAgent identifies Hostr to the geocoder.
	DefaultUserAgent = "hostr-sdk/1.0 (+https://hostr.network)"
	// DefaultRate is one request a second, what the public server's policy allows.
	DefaultRate rate.Limit = 1
)

// lookupTimeout ends a look-up before the bridge gives up after 120 s.
const lookupTimeout = 90 * time.Second

// maxTextLength is the longest place name or address that is asked for, in
// characters.
const maxTextLength = 1000

// Client looks places and addresses up. One client serves the whole process, so
// that its rate and its memory are the process's. It is safe for concurrent use;
// equal look-ups in flight are one.
type Client struct {
	base      *url.URL
	http      *http.Client
	transport *http.Transport // nil when the HTTP client is the caller's
	clock     Clock
	log       zerolog.Logger
	userAgent string
	limiter   *rate.Limiter
	limits    limits

	memory  *placeMemory
	answers answers
	places  flight.Group[Place]
	points  flight.Group[Point]
	// parsing has room for as many parsers of large answers as may run at once.
	parsing chan struct{}
}

// Config is what a client is made of. The zero value asks the public server.
type Config struct {
	// BaseURL is the whole search endpoint, path included, as in DefaultBaseURL; the
	// override geocoderUrl (spec 11 §3.6) has the same form. Its own query, such as
	// a key that another server wants, is kept in front of each request's.
	BaseURL string
	// HTTPClient sends the requests; nil means one of the client's own.
	HTTPClient *http.Client
	// Memory keeps answers across restarts; nil keeps none.
	Memory Memory
	// Clock is the time the client waits by; nil means the system's.
	Clock Clock
	// Logger takes one debug line for each request; none of them names the place.
	Logger zerolog.Logger
	// UserAgent replaces DefaultUserAgent.
	UserAgent string
	// Rate is how many requests a second may be sent; 0 means DefaultRate. A geocoder
	// of one's own, such as the sandbox's, may be asked faster: rate.Inf waits never.
	Rate rate.Limit
}

// limits are the bounds of one look-up; tests narrow them.
type limits struct {
	attempt, lookup time.Duration
	answer          int64
}

// New returns a client. The error tells what is wrong with the base URL.
func New(config Config) (*Client, error) {
	base, err := parseBaseURL(cmp.Or(config.BaseURL, DefaultBaseURL))
	if err != nil {
		return nil, err
	}
	client := &Client{
		base:      base,
		http:      config.HTTPClient,
		clock:     config.Clock,
		log:       config.Logger,
		userAgent: cmp.Or(config.UserAgent, DefaultUserAgent),
		limiter:   rate.NewLimiter(DefaultRate, 1),
		limits:    limits{attempt: attemptTimeout, lookup: lookupTimeout, answer: maxAnswerBytes},
		memory:    newPlaceMemory(rememberedPlaces, rememberedPositions),
		// Half the processors: there are other things to do.
		parsing: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
	}
	client.answers = answers{memory: config.Memory, log: config.Logger, most: maxAnswerBytes}
	if config.Rate > 0 {
		client.limiter.SetLimit(config.Rate)
	}
	if client.http == nil {
		client.transport = newTransport()
		client.http = &http.Client{Transport: client.transport}
	}
	if client.clock == nil {
		client.clock = systemClock{}
	}
	return client, nil
}

// Close ends all look-ups in flight and waits for them, and up to a second for their
// answers to be kept; later look-ups fail.
func (c *Client) Close() {
	c.places.Close()
	c.points.Close()
	c.answers.close()
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
}

// Place finds the area that a place name stands for: the first answer when asked
// for a country, a state, a city and a settlement of that name, in that order
// (spec 42 §1.2). Places found are remembered, without regard to letter case, and kept
// in the Memory; that nothing was found is not. An
// error is a *fault.Error that names the place and says what happened, unless ctx
// ended.
func (c *Client) Place(ctx context.Context, name string) (Place, error) {
	name = strings.TrimSpace(name)
	if err := checkText("place", name); err != nil {
		return Place{}, err
	}
	key := placeKey(name)
	if place, ok := c.memory.get(key); ok {
		return place, nil
	}
	place, err := c.places.DoWhileWanted(ctx, key, func(ctx context.Context) (Place, error) {
		ctx, cancel := context.WithTimeout(ctx, c.limits.lookup)
		defer cancel()
		return c.findPlace(ctx, key, name)
	})
	if err != nil {
		return Place{}, c.explain(ctx, err, "the place %s could not be looked up", name)
	}
	return place, nil
}

// Point finds the position of an address (spec 42 §1.3). Positions found are kept in
// the Memory, without the address. An
// error is a *fault.Error that names the address and says what happened, unless ctx
// ended.
func (c *Client) Point(ctx context.Context, address string) (Point, error) {
	address = strings.TrimSpace(address)
	if err := checkText("address", address); err != nil {
		return Point{}, err
	}
	point, err := c.points.DoWhileWanted(ctx, address, func(ctx context.Context) (Point, error) {
		ctx, cancel := context.WithTimeout(ctx, c.limits.lookup)
		defer cancel()
		return c.findPoint(ctx, address)
	})
	if err != nil {
		return Point{}, c.explain(ctx, err, "the address %s could not be located", address)
	}
	return point, nil
}

// explain gives a failure the words and the code that callers may show. What the
// caller cancelled stays a context error.
func (c *Client) explain(ctx context.Context, err error, format, text string) error {
	what := fmt.Sprintf(format, quote(text))
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case ctx.Err() != nil:
		err = transientError{fmt.Errorf("the time for it ran out: %w", ctx.Err())}
	case errors.Is(err, context.DeadlineExceeded):
		err = transientError{fmt.Errorf("%s gave no answer within %s", c.base.Host, c.limits.lookup)}
	case errors.Is(err, flight.ErrClosed):
		err = errClosed
	}
	coded := fault.New(fault.UnexpectedError, "%s: %w", what, err)
	var passing transientError
	if errors.As(err, &passing) {
		return coded.WithHint("try again in a moment").Transient()
	}
	return coded
}

var errClosed = errors.New("the geocoder client is closed")

// transientError is a failure that may be gone when the look-up is tried again.
type transientError struct{ error }

func (e transientError) Unwrap() error { return e.error }

func checkText(kind, text string) error {
	if text == "" {
		return fault.New(fault.InvalidInput, "the %s is blank; there is nothing to look up", kind)
	}
	if length := utf8.RuneCountInString(text); length > maxTextLength {
		return fault.New(fault.InvalidInput, "the %s %s has %d characters; at most %d can be looked up",
			kind, quote(text), length, maxTextLength)
	}
	return nil
}

// quote makes user text fit for a message: quoted, on one line, bounded.
func quote(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

// newTransport returns a transport with the standard one's settings, so that its
// connections can be closed without closing anybody else's.
func newTransport() *http.Transport {
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		return standard.Clone()
	}
	return &http.Transport{Proxy: http.ProxyFromEnvironment}
}

func parseBaseURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil {
		// The parser's own words repeat the URL, which may hold a key.
		return nil, errors.New("the geocoder URL cannot be read; it must look like " + DefaultBaseURL)
	}
	if base.Scheme != "https" && base.Scheme != "http" || base.Host == "" {
		return nil, errors.New("the geocoder URL must be a whole http or https URL like " + DefaultBaseURL)
	}
	base.Fragment = ""
	return base, nil
}
