package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// maxFrame is the largest message a relay may send, in bytes; a larger one ends
// the connection.
const maxFrame = 32 << 20

// dialer opens WebSockets under the TLS rule of the environment (spec 11 §4).
type dialer struct {
	transport  *http.Transport
	client     *http.Client
	frameLimit int64 // bytes
}

func newDialer(config *tls.Config) *dialer {
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: config.Clone(),
		// Without a proxy.
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return (&tls.Dialer{Config: configFor(config, host)}).DialContext(ctx, network, address)
		},
		// A WebSocket needs HTTP/1.1.
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
		MaxResponseHeaderBytes: 64 << 10,
		// Only connections on which no WebSocket came about are ever idle.
		IdleConnTimeout: 5 * time.Second,
	}
	return &dialer{transport: transport, frameLimit: maxFrame, client: &http.Client{
		Transport: transport,
		// A relay that sends us elsewhere could point at a machine only we can reach.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// configFor names the peer. An IP address is not sent as a server name, so a
// verification of the configuration's own would not learn which peer it looks at.
func configFor(config *tls.Config, host string) *tls.Config {
	if config == nil {
		return &tls.Config{ServerName: host}
	}
	config = config.Clone()
	config.ServerName = host
	if verify := config.VerifyConnection; verify != nil {
		config.VerifyConnection = func(state tls.ConnectionState) error {
			state.ServerName = host
			return verify(state)
		}
	}
	return config
}

func (d *dialer) dial(ctx context.Context, relay string) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, relay, &websocket.DialOptions{HTTPClient: d.client})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, dialProblem(err)
	}
	conn.SetReadLimit(d.frameLimit)
	return conn, nil
}

func (d *dialer) close() { d.transport.CloseIdleConnections() }

// dialProblem leaves the URL out of the error, since its query may hold a token,
// and the library's own preamble.
func dialProblem(err error) error {
	if of := new(url.Error); errors.As(err, &of) {
		return of.Err
	}
	return errors.New(strings.TrimPrefix(err.Error(), "failed to WebSocket dial: "))
}
