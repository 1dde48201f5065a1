package relay

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hostr-daemon/internal/environment"
)

func TestTLSComesFromTheConfiguration(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	secure := httptest.NewUnstartedServer(relay)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // It will complain of the strict client.
	secure.StartTLS()
	t.Cleanup(secure.Close)
	url := "wss" + strings.TrimPrefix(secure.URL, "https")
	relay.store(notes(t, 1)...)

	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	trusting := newTestClient(t, Config{HostrRelay: url, TLS: &tls.Config{RootCAs: roots}})
	wantEnd(t, mustQuery(t, trusting, allNotes, QueryOptions{}), url, EndEOSE, "")

	strict := newTestClient(t, Config{HostrRelay: url, TLS: &tls.Config{RootCAs: x509.NewCertPool()}})
	wantEnd(t, mustQuery(t, strict, allNotes, QueryOptions{}), url, EndUnreachable, "certificate")
}

// The development rule of spec 11 §4 must learn the peer's name even where TLS sends
// none: an IP address.
func TestDevelopmentRuleReachesAnAddress(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	secure := httptest.NewUnstartedServer(relay)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	relay.store(notes(t, 1)...)
	url := "wss" + strings.TrimPrefix(secure.URL, "https")
	facts, err := environment.Resolve("development")
	if err != nil {
		t.Fatal(err)
	}
	foreign := newTestClient(t, Config{HostrRelay: url, TLS: facts.TLSConfig()})
	wantEnd(t, mustQuery(t, foreign, allNotes, QueryOptions{}), url, EndUnreachable, "certificate")

	facts.HostrRelay = url
	own := newTestClient(t, Config{HostrRelay: url, TLS: facts.TLSConfig()})
	wantEnd(t, mustQuery(t, own, allNotes, QueryOptions{}), url, EndEOSE, "")
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, script{})
	redirecting := httptest.NewServer(http.RedirectHandler(relay.server.URL, http.StatusFound))
	t.Cleanup(redirecting.Close)
	url := "ws" + strings.TrimPrefix(redirecting.URL, "http")
	client := newTestClient(t, Config{HostrRelay: url})
	wantEnd(t, mustQuery(t, client, allNotes, QueryOptions{}), url, EndUnreachable, "302")
	if relay.connections() != 0 {
		t.Error("the redirect was followed")
	}
}

func TestErrorsDoNotShowTheQueryOfTheURL(t *testing.T) {
	t.Parallel()
	url := closedPort(t) + "/path?token=secret"
	client := newTestClient(t, Config{HostrRelay: url})
	answer := mustQuery(t, client, allNotes, QueryOptions{})
	wantEnd(t, answer, url, EndUnreachable, "")
	if reason := answer.Relays[0].Reason; strings.Contains(reason, "secret") {
		t.Errorf("the reason is %q", reason)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	verifier := newTestVerifier(t)
	for name, config := range map[string]Config{
		"no relay URL": {HostrRelay: "https://h", Verifier: verifier},
		"no verifier":  {HostrRelay: "wss://h"},
		"no key":       {HostrRelay: "wss://h", Verifier: verifier, Account: &keyAccount{public: "abc"}},
	} {
		if _, err := NewClient(config); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	client := newTestClient(t, Config{HostrRelay: "wss://H:443/", Bootstrap: []string{"wss://h", "wss://b", "", blockedRelay}})
	if got := strings.Join(client.BootstrapRelays(), " "); client.HostrRelay() != "wss://h" || got != "wss://h wss://b" {
		t.Errorf("relays are %s and %s", client.HostrRelay(), got)
	}
	if err := client.Connect(testContext(t), "not a url"); err == nil {
		t.Error("connected to no URL")
	}
}
