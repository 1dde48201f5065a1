// Package boltz talks to the swap provider's HTTP API (spec 71 §2). So far it asks
// which chains and tokens swaps are offered on.
//
// It knows the API's paths, headers and shapes, strictly where money depends on them
// and forgivingly elsewhere. It must never know which chains are configured, what an
// escrow is, or a preimage's owner.
package boltz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/flight"
	"hostr-daemon/internal/trace"
)

const (
	// requestTimeout bounds one request, from the dial to the last byte.
	requestTimeout = 30 * time.Second
	// maxAnswerBytes bounds one answer.
	maxAnswerBytes = 4 << 20
	// referral is what every Hostr client calls itself.
	referral = "boltz_webapp_desktop"
)

// ErrClosed is in the error of every call on a client that is closed.
var ErrClosed = errors.New("the client of the swap provider is closed")

// Client talks to one provider. One client serves the whole process. It is safe for
// concurrent use.
type Client struct {
	base      string
	host      string
	http      *http.Client
	transport *http.Transport
	log       zerolog.Logger
	timeout   time.Duration

	known    atomic.Pointer[[]Chain]
	requests flight.Group[[]Chain]
}

// Config is what a client is made of.
type Config struct {
	// APIURL is the base of the API, such as https://api.boltz.exchange/v2. It may
	// carry a key: it is kept out of errors and logs.
	APIURL string
	// Transport is the client's alone from then on: it closes idle connections. nil
	// means one with the standard settings.
	Transport *http.Transport
	// Logger takes one debug line for each request.
	Logger zerolog.Logger
}

// New checks the configuration; it connects to nothing yet.
func New(config Config) (*Client, error) {
	parsed, err := url.Parse(config.APIURL)
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, errors.New("the URL of the swap provider is no whole http or https URL")
	}
	transport := config.Transport
	if transport == nil {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	}
	return &Client{
		base: strings.TrimRight(config.APIURL, "/"), host: parsed.Host,
		http: &http.Client{Transport: transport, CheckRedirect: withoutReferer}, transport: transport,
		log: config.Logger, timeout: requestTimeout,
	}, nil
}

// Close ends requests under way and waits for them; later ones fail.
func (c *Client) Close() {
	c.requests.Close()
	c.transport.CloseIdleConnections()
}

// Chains returns the chains that swaps are offered on, in the provider's order. It
// asks until that has succeeded once, then answers from memory; a failure is not
// remembered (spec 71 §2.1). The result must not be changed.
func (c *Client) Chains(ctx context.Context) ([]Chain, error) {
	if known := c.known.Load(); known != nil {
		return *known, nil
	}
	const path = "/chain/contracts"
	chains, err := c.requests.Do(ctx, path, func(ctx context.Context) ([]Chain, error) {
		return c.discover(ctx, path)
	})
	if errors.Is(err, flight.ErrClosed) {
		return nil, &Failure{Host: c.host, Path: path, Cause: ErrClosed}
	}
	return chains, err
}

func (c *Client) discover(ctx context.Context, path string) ([]Chain, error) {
	body, err := c.get(ctx, path)
	if err != nil {
		return nil, err
	}
	chains, err := decodeChains(body)
	if err != nil {
		return nil, &Failure{Host: c.host, Path: path, Cause: err}
	}
	c.known.Store(&chains)
	return chains, nil
}

// get returns the body of a successful answer.
func (c *Client) get(ctx context.Context, path string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	started := time.Now()
	status, body, err := c.send(limited, path)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %s", c.timeout)
	}
	c.log.Debug().Str("host", c.host).Str("path", path).Int("status", status).
		Dur("elapsed", time.Since(started)).Err(err).Msg("boltz.request")
	if err != nil {
		return nil, &Failure{Host: c.host, Path: path, Cause: err}
	}
	if status < 200 || status > 299 {
		return nil, &Failure{Host: c.host, Path: path, Status: status, Text: errorText(body)}
	}
	return body, nil
}

func (c *Client) send(ctx context.Context, path string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return 0, nil, errors.New("the request cannot be made")
	}
	request.Header.Set("Referral", referral)
	if id := trace.ID(ctx); fitsHeader(id) {
		request.Header.Set("X-Trace-Id", id)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, withoutURL(err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err != nil {
		return response.StatusCode, nil, fmt.Errorf("the answer broke off: %w", err)
	}
	if len(body) > maxAnswerBytes {
		return response.StatusCode, nil, fmt.Errorf("the answer is larger than %d bytes", maxAnswerBytes)
	}
	return response.StatusCode, body, nil
}

// withoutReferer follows as many redirects as net/http would. The URL they come from
// may hold a key, which is not the next host's business.
func withoutReferer(request *http.Request, via []*http.Request) error {
	const maxRedirects = 10
	request.Header.Del("Referer")
	if len(via) >= maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// errorText reads {"error":"text"} and makes it fit to be shown; "" for anything else.
func errorText(body []byte) string {
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return shown(answer.Error)
}

// withoutURL drops the URL that net/http puts in front of its errors: it may hold a
// key.
func withoutURL(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// fitsHeader tells whether a trace id can be sent; net/http refuses the whole
// request for one that cannot.
func fitsHeader(id string) bool {
	const longest = 256
	printable := func(r rune) bool { return r >= ' ' && r <= '~' }
	return id != "" && len(id) <= longest && !strings.ContainsFunc(id, func(r rune) bool { return !printable(r) })
}
