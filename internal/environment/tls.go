package environment

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"
)

// TLSConfig returns the configuration for every TLS client of the process: relays,
// HTTP, RPC and the swap provider (spec 11 §4). Outside the development rule it
// verifies as usual. Inside it, a certificate that fails verification is forgiven
// for the hosts of the rule and for no other.
//
// A peer addressed by an IP address sends no server name, so one shared
// configuration cannot know which peer it looks at: under the rule such a peer is
// refused here and needs TLSConfigFor.
func (e Environment) TLSConfig() *tls.Config { return e.tlsConfig("") }

// TLSConfigFor returns the configuration for one peer, a host name or IP address. It
// is what TLSConfig is, and works for IP addresses too.
func (e Environment) TLSConfigFor(host string) *tls.Config { return e.tlsConfig(host) }

var errUnnamedPeer = errors.New("tls: the certificate of a peer addressed by IP address cannot be checked while the development TLS rule is in force: use a host name, such as localhost")

func (e Environment) tlsConfig(host string) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	rule := e.developmentTLS()
	if !rule.inForce() {
		return config
	}
	config.InsecureSkipVerify = true // VerifyConnection verifies instead
	config.VerifyConnection = func(state tls.ConnectionState) error {
		peer := host
		if peer == "" {
			peer = state.ServerName
		}
		if peer == "" {
			return errUnnamedPeer
		}
		if err := verify(state, peer); err != nil && !rule.forgives(peer) {
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
		}
		return nil
	}
	return config
}

// verify does what crypto/tls does when it is not told to skip verification.
func verify(state tls.ConnectionState, peer string) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the peer sent no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		intermediates.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: peer, Intermediates: intermediates})
	return err
}

// developmentTLS is the rule of spec 11 §4 in its Go form.
type developmentTLS struct {
	hosts  map[string]bool
	wild   bool
	forced bool
}

const developmentSuffix = ".development"

func (e Environment) developmentTLS() developmentTLS {
	rule := developmentTLS{hosts: map[string]bool{}, forced: e.AllowSelfSigned}
	urls := append([]string{e.HostrRelay}, e.BootstrapRelays...)
	for _, text := range append(urls, e.Blossom...) {
		parsed, err := url.Parse(strings.TrimSpace(text))
		if err != nil || parsed.Hostname() == "" {
			continue
		}
		host := normalHost(parsed.Hostname())
		rule.hosts[host] = true
		rule.wild = rule.wild || strings.HasSuffix(host, developmentSuffix)
	}
	return rule
}

func (d developmentTLS) inForce() bool { return d.wild || d.forced }

func (d developmentTLS) forgives(peer string) bool {
	host := normalHost(peer)
	if strings.HasSuffix(host, developmentSuffix) {
		return true
	}
	return d.hosts[host] && (d.forced || isLoopback(host))
}

func isLoopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

func normalHost(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
