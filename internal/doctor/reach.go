package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/runtime"
)

// reach is the doctor's way to the outside systems of an environment: the daemon's
// own parts, apart from the daemon's own connections.
type reach struct {
	relays    *relay.Client
	verifier  *relay.Verifier
	transport *http.Transport
	asker     asker
}

func newReach(facts environment.Environment) (*reach, error) {
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	relays, err := relay.NewClient(relay.Config{
		HostrRelay: facts.HostrRelay,
		Bootstrap:  facts.BootstrapList(),
		TLS:        facts.TLSConfig(),
		Verifier:   verifier,
		Logger:     zerolog.Nop(),
	})
	if err != nil {
		verifier.Close()
		return nil, fmt.Errorf("setting up the relay client of %s: %w", facts.Name, err)
	}
	transport := runtime.NewTransport(facts)
	return &reach{relays: relays, verifier: verifier, transport: transport, asker: asker{&http.Client{Transport: transport}}}, nil
}

func (r *reach) close() {
	r.relays.Close()
	r.verifier.Close()
	r.transport.CloseIdleConnections()
}

// checks are those of the outside systems, in the order of the report.
func (r *reach) checks(facts environment.Environment) []check {
	var checks []check
	for _, url := range facts.BootstrapList() {
		isHostr := url == facts.HostrRelay
		subject := "relay"
		if isHostr {
			subject = "Hostr relay"
		}
		checks = append(checks, check{subject: subject, target: shown(url), optional: !isHostr, run: func(ctx context.Context) (string, error) {
			return "", r.askRelay(ctx, url)
		}})
	}
	for _, server := range facts.Blossom {
		checks = append(checks, check{subject: "Blossom", target: shown(server), optional: true, run: func(ctx context.Context) (string, error) {
			return "", r.asker.blossom(ctx, server)
		}})
	}
	checks = append(checks, check{subject: "geocoder", target: shown(facts.GeocoderURL), optional: true, run: func(ctx context.Context) (string, error) {
		return "", r.asker.geocode(ctx, facts.GeocoderURL)
	}})
	return append(checks, r.moneyChecks(facts.EVM)...)
}

func (r *reach) moneyChecks(evm environment.EVMConfig) []check {
	var checks []check
	for _, chain := range evm.Chains {
		for _, endpoint := range chain.RPCURLs {
			checks = append(checks, check{subject: "chain " + chain.ID, target: endpoint.String(), optional: true, run: func(ctx context.Context) (string, error) {
				return r.asker.chainID(ctx, endpoint, chain.ChainID)
			}})
		}
	}
	if boltz := evm.Boltz; boltz != nil {
		checks = append(checks, check{subject: "swap provider", target: boltz.APIURL.String(), optional: true, run: func(ctx context.Context) (string, error) {
			return r.asker.swapPairs(ctx, boltz.APIURL)
		}})
	}
	return checks
}

// askRelay asks for one profile: a relay that takes connections but answers nothing
// is no help.
func (r *reach) askRelay(ctx context.Context, target string) error {
	filter := nostr.Filter{Kinds: []int{nostr.KindProfileMetadata}, Limit: 1}
	answer, err := r.relays.Query(ctx, filter, relay.QueryOptions{Relays: []string{target}, Timeout: patience})
	switch {
	case err != nil:
		return err
	case answer.Complete:
		return nil
	case len(answer.Relays) == 0:
		return errors.New("its address is no relay URL that may be used")
	}
	outcome := answer.Relays[0]
	return errors.New(withoutSecrets(strings.TrimPrefix(outcome.String(), outcome.URL+" ")))
}

// shown is what may be seen of an address: its query and user may be keys.
func shown(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return "(unreadable address)"
	}
	parsed.RawQuery, parsed.User, parsed.Fragment = "", nil, ""
	return parsed.String()
}
