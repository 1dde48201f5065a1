package runtime

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"hostr-daemon/internal/blossom"
	"hostr-daemon/internal/boltz"
	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/evm"
	"hostr-daemon/internal/geocode"
	"hostr-daemon/internal/imagesource"
	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/media"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/relaylists"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/seeds"
	"hostr-daemon/internal/sessions"
	"hostr-daemon/internal/store"
	"hostr-daemon/internal/turns"
)

// What a connection to an HTTP server may take to come about.
const dialTimeout, handshakeTimeout = 10 * time.Second, 10 * time.Second

// shared is what all sessions of the process use.
type shared struct {
	verifier *relay.Verifier
	geocoder *geocode.Client
	cells    *listings.Cells
	http     *http.Transport
	images   *imagesource.Reader
	chains   *evm.Chains
	swaps    *boltz.Client
	sessions *sessions.Registry
}

// newShared builds it over the database and the place of private keys. Nothing is
// contacted.
func newShared(facts environment.Environment, opened *store.Store, kept *secrets.Store, options Options) (*shared, error) {
	transport := NewTransport(facts)
	userAgent := "hostr-daemon/" + options.Version + " (+https://hostr.network)"
	geocoder, err := geocode.New(geocode.Config{
		BaseURL:    facts.GeocoderURL,
		HTTPClient: &http.Client{Transport: transport, CheckRedirect: withoutReferer},
		Memory:     opened.GeocoderAnswers(),
		Logger:     options.Logger,
		UserAgent:  userAgent,
		Rate:       geocoderRate(facts.GeocoderURL),
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the geocoder of %s: %w", facts.Name, err)
	}
	chains, swaps, err := payments(facts, options.Logger)
	if err != nil {
		geocoder.Close()
		return nil, err
	}
	verifier, cells := relay.NewVerifier(opened.VerifiedEvents(), options.RelayLogger), listings.NewCells(geocoder)
	pictures := blossom.New(blossom.Config{Servers: facts.Blossom, Transport: transport, Now: options.Now, UserAgent: userAgent})
	images := imagesource.New(imageRules(facts, options.Images, userAgent))
	config := sessions.Config{
		Environment:   facts,
		Secrets:       kept,
		Swaps:         opened,
		SeedMarks:     func(pubkey string) seeds.Memory { return opened.SeedMarks(pubkey) },
		MessageCache:  func(pubkey string) inbox.Memory { return opened.MessageCache(pubkey) },
		Operations:    opened,
		ChainActivity: chains,
		TradeTurns:    &turns.Keyed{},
		Verifier:      verifier,
		Cells:         cells,
		Profiles:      profiles.NewCache(options.Now),
		RelayLists:    relaylists.NewCache(options.Now),
		Media:         media.New(pictures, images, options.Logger),
		Contracts:     chains,
		Notify:        options.Notify,
		Journal:       options.Journal,
		Logger:        options.Logger,
		RelayLogger:   options.RelayLogger,
		Random:        rand.Reader,
		Now:           options.Now,
	}
	if swaps != nil {
		config.SwapProvider = swaps
	}
	return &shared{
		verifier: verifier, geocoder: geocoder, cells: cells, http: transport, images: images,
		chains: chains, swaps: swaps, sessions: sessions.New(config),
	}, nil
}

// payments returns the environment's chains and its swap provider, which may be nil.
func payments(facts environment.Environment, logger zerolog.Logger) (*evm.Chains, *boltz.Client, error) {
	var configs []evm.Config
	for _, chain := range facts.EVM.Chains {
		config := evm.Config{ChainID: chain.ChainID, Transport: NewTransport(facts), Logger: logger}
		for _, endpoint := range chain.RPCURLs {
			config.URLs = append(config.URLs, endpoint.Reveal())
		}
		configs = append(configs, config)
	}
	chains, err := evm.NewChains(configs)
	if err != nil {
		return nil, nil, fmt.Errorf("setting up the chains of %s: %w", facts.Name, err)
	}
	if facts.EVM.Boltz == nil {
		return chains, nil, nil
	}
	swaps, err := boltz.New(boltz.Config{APIURL: facts.EVM.Boltz.APIURL.Reveal(), Transport: NewTransport(facts), Logger: logger})
	if err != nil {
		chains.Close()
		return nil, nil, fmt.Errorf("setting up the swap provider of %s: %w", facts.Name, err)
	}
	return chains, swaps, nil
}

// close ends the sessions, then what runs beneath them.
func (s *shared) close() {
	s.sessions.Close()
	s.chains.Close()
	if s.swaps != nil {
		s.swaps.Close()
	}
	s.cells.Close()
	s.geocoder.Close()
	s.verifier.Close()
	s.images.Close()
	s.http.CloseIdleConnections()
}

// imageRules say what images of listings may be read (spec 40 §9.1).
func imageRules(facts environment.Environment, options ImageOptions, userAgent string) imagesource.Config {
	ownMachines := facts.Name == "development" || facts.Name == "test"
	return imagesource.Config{
		AllowFiles:        options.AllowFiles,
		AllowPrivateHosts: options.AllowPrivateHosts || ownMachines,
		TrustedServers:    facts.Blossom,
		TLS:               facts.TLSConfigFor,
		UserAgent:         userAgent,
	}
}

// NewTransport returns a way to HTTP servers of an environment, under its TLS rule
// (spec 11 §4) and the proxy of the process environment. Whoever owns it closes its
// idle connections.
func NewTransport(facts environment.Environment) *http.Transport {
	return &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
		// Without a proxy. The rule must be told the host, because an IP address is not
		// sent as a server name.
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			config := facts.TLSConfigFor(host)
			config.NextProtos = []string{"h2", "http/1.1"}
			dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout + handshakeTimeout}, Config: config}
			return dialer.DialContext(ctx, network, address)
		},
		TLSClientConfig:       facts.TLSConfig(),
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          16,
		IdleConnTimeout:       60 * time.Second,
		TLSHandshakeTimeout:   handshakeTimeout,
		ResponseHeaderTimeout: 30 * time.Second,
	}
}

// withoutReferer follows as many redirects as net/http would. The URL they come from
// may hold a key, and what a person looks for: neither is the next host's business.
func withoutReferer(request *http.Request, via []*http.Request) error {
	const maxRedirects = 10
	request.Header.Del("Referer")
	if len(via) >= maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// geocoderRate spares the public geocoder; one on this machine is the user's own.
func geocoderRate(baseURL string) rate.Limit {
	parsed, err := url.Parse(baseURL)
	if err != nil {
		return geocode.DefaultRate
	}
	host := parsed.Hostname()
	if address := net.ParseIP(host); host == "localhost" || address != nil && address.IsLoopback() {
		return rate.Inf
	}
	return geocode.DefaultRate
}
