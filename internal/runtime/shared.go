package runtime

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/time/rate"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/geocode"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
)

// shared is what all sessions of the process use.
type shared struct {
	verifier *relay.Verifier
	geocoder *geocode.Client
	cells    *listings.Cells
	profiles *profiles.Cache
	http     *http.Transport
}

// newShared builds it over the memory of verified events. Nothing is contacted.
func newShared(facts environment.Environment, verified relay.Memory, options Options) (*shared, error) {
	transport := NewTransport(facts)
	geocoder, err := geocode.New(geocode.Config{
		BaseURL:    facts.GeocoderURL,
		HTTPClient: &http.Client{Transport: transport},
		Logger:     options.Logger,
		UserAgent:  "hostr-daemon/" + options.Version + " (+https://hostr.network)",
		Rate:       geocoderRate(facts.GeocoderURL),
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the geocoder of %s: %w", facts.Name, err)
	}
	return &shared{
		verifier: relay.NewVerifier(verified, options.RelayLogger),
		geocoder: geocoder,
		cells:    listings.NewCells(geocoder),
		profiles: profiles.NewCache(options.Now),
		http:     transport,
	}, nil
}

// close ends what runs in the background. The sessions are closed before.
func (s *shared) close() {
	s.cells.Close()
	s.geocoder.Close()
	s.verifier.Close()
	s.http.CloseIdleConnections()
}

// NewTransport returns the way to the HTTP servers of an environment, under its TLS
// rule (spec 11 §4) and the proxy of the process environment. Whoever owns it closes
// its idle connections.
func NewTransport(facts environment.Environment) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       facts.TLSConfig(),
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          16,
		IdleConnTimeout:       60 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
	}
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
