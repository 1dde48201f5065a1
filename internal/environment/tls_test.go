package environment

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// authority signs the certificates that verify. TestMain makes the process trust it
// through SSL_CERT_FILE, the way an operator would.
var authority *issuer

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "environment")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	authority = newIssuer()
	roots := filepath.Join(dir, "roots.pem")
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.certificate.Raw})
	if err := os.WriteFile(roots, encoded, 0o600); err != nil {
		panic(err)
	}
	os.Setenv("SSL_CERT_FILE", roots)
	os.Setenv("SSL_CERT_DIR", dir)
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newIssuer() *issuer {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, key := sign(template, nil)
	return &issuer{certificate: certificate, key: key}
}

// sign makes a certificate of the template, signed by the issuer or by itself.
func sign(template *x509.Certificate, by *issuer) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		panic(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		panic(err)
	}
	return certificate, key
}

type certificateKind int

const (
	selfSigned  certificateKind = iota
	otherName                   // self-signed, for another host
	expired                     // self-signed, for the host
	trusted                     // of the authority, for the host
	misdirected                 // of the authority, for another host
)

func serverCertificate(kind certificateKind, host string) tls.Certificate {
	if kind == otherName || kind == misdirected {
		host = "somebody.else.example"
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if address := net.ParseIP(host); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = []string{host}
	}
	if kind == expired {
		template.NotAfter = time.Now().Add(-time.Hour)
	}
	var by *issuer
	if kind == trusted || kind == misdirected {
		by = authority
	}
	certificate, key := sign(template, by)
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

func TestDevelopmentTLSRule(t *testing.T) {
	t.Parallel()
	production, development, staging := Options{Name: "production"}, Options{Name: "development"}, Options{Name: "staging"}
	forced := Options{Name: "production", Getenv: getenv(map[string]string{"HOSTR_ACCEPT_SELF_SIGNED_DEV_CERTS": "1"})}
	forcedToo := Options{Name: "production", Getenv: getenv(map[string]string{"HOSTR_CLI_ACCEPT_SELF_SIGNED_DEV_CERTS": "1"})}
	notForced := Options{Name: "production", Getenv: getenv(map[string]string{"HOSTR_ACCEPT_SELF_SIGNED_DEV_CERTS": "true"})}
	relay := func(name, url string) Options { return Options{Name: name, Relay: url} }
	for _, test := range []struct {
		name     string
		options  Options
		host     string
		kind     certificateKind
		accepted bool
	}{
		{"production is strict", production, "relay.hostr.network", selfSigned, false},
		{"production accepts what verifies", production, "relay.hostr.network", trusted, true},
		{"production checks names", production, "relay.hostr.network", misdirected, false},
		{"production has no development hosts", production, "relay.hostr.development", selfSigned, false},
		{"production knows no loopback", production, "localhost", selfSigned, false},
		{"production with a local relay stays strict", relay("production", "wss://localhost:7777"), "localhost", selfSigned, false},
		{"any other value does not force", notForced, "relay.hostr.network", selfSigned, false},
		{"staging is strict", staging, "relay.staging.hostr.network", selfSigned, false},

		{"development relay", development, "relay.hostr.development", selfSigned, true},
		{"development, name of another host", development, "relay.hostr.development", otherName, true},
		{"development, expired", development, "relay.hostr.development", expired, true},
		{"development, capitals", development, "Relay.HOSTR.Development", selfSigned, true},
		{"development, dot at the end", development, "relay.hostr.development.", selfSigned, true},
		{"development, host outside Hosts", development, "boltz.hostr.development", selfSigned, true},
		{"test as well", Options{Name: "test"}, "arbitrum.hostr.development", selfSigned, true},
		{"suffix needs its dot", development, "evildevelopment", selfSigned, false},
		{"suffix is at the end", development, "relay.hostr.development.example", selfSigned, false},
		{"development is strict elsewhere", development, "api.boltz.exchange", selfSigned, false},
		{"development checks names elsewhere", development, "api.boltz.exchange", misdirected, false},
		{"development accepts what verifies", development, "api.boltz.exchange", trusted, true},
		{"development, loopback outside Hosts", development, "localhost", selfSigned, false},
		{"development, loopback in Hosts", relay("development", "wss://LocalHost:7777"), "localhost", selfSigned, true},
		{"development, other host in Hosts", relay("development", "wss://relay.example.org"), "relay.example.org", selfSigned, false},

		{"development relay in production", relay("production", "wss://relay.hostr.development"), "relay.hostr.development", selfSigned, true},
		{"does not relax the real Blossom", relay("production", "wss://relay.hostr.development"), "blossom.hostr.network", selfSigned, false},

		{"forced, Hostr relay", forced, "relay.hostr.network", selfSigned, true},
		{"forced, bootstrap relay", forcedToo, "relay.damus.io", expired, true},
		{"forced, Blossom", forced, "blossom.hostr.network", selfSigned, true},
		{"forced, development host", forced, "anything.development", selfSigned, true},
		{"forced is strict elsewhere", forced, "api.boltz.exchange", selfSigned, false},
		{"forced, loopback outside Hosts", forced, "localhost", selfSigned, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			skipWithoutTestRoots(t, test.kind)
			config := loadForTLS(t, test.options).TLSConfig()
			config.ServerName = test.host // as every dialer does
			checkHandshake(t, config, serverCertificate(test.kind, test.host), test.accepted)
		})
	}
}

func TestPeersAddressedByIP(t *testing.T) {
	t.Parallel()
	local := Options{Name: "development", Relay: "wss://127.0.0.1:7777"}
	for _, test := range []struct {
		name     string
		options  Options
		host     string
		kind     certificateKind
		accepted bool
	}{
		{"loopback in Hosts", local, "127.0.0.1", selfSigned, true},
		{"loopback outside Hosts", local, "127.0.0.2", selfSigned, false},
		{"loopback outside Hosts that verifies", local, "127.0.0.2", trusted, true},
		{"IPv6 loopback outside Hosts", local, "::1", selfSigned, false},
		{"IPv6 that verifies", local, "::1", trusted, true},
		{"a name still works", local, "relay.hostr.development", selfSigned, true},
		{"strict environment", Options{Name: "production"}, "127.0.0.1", selfSigned, false},
		{"strict environment, verified", Options{Name: "production"}, "127.0.0.1", trusted, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			skipWithoutTestRoots(t, test.kind)
			config := loadForTLS(t, test.options).TLSConfigFor(test.host)
			checkHandshake(t, config, serverCertificate(test.kind, test.host), test.accepted)
		})
	}
	t.Run("shared configuration refuses what it cannot know", func(t *testing.T) {
		t.Parallel()
		config := loadForTLS(t, local).TLSConfig()
		config.ServerName = "127.0.0.1"
		if err := shakeHands(t, config, serverCertificate(selfSigned, "127.0.0.1")); !errors.Is(err, errUnnamedPeer) {
			t.Errorf("%v", err)
		}
	})
}

func TestZeroEnvironmentIsStrict(t *testing.T) {
	t.Parallel()
	config := Environment{}.TLSConfig()
	config.ServerName = "relay.hostr.development"
	checkHandshake(t, config, serverCertificate(selfSigned, "relay.hostr.development"), false)
}

func TestRefusalNamesTheCause(t *testing.T) {
	t.Parallel()
	config := loadForTLS(t, Options{Name: "development"}).TLSConfig()
	config.ServerName = "other.example"
	err := shakeHands(t, config, serverCertificate(selfSigned, "other.example"))
	var refused *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &refused) || !errors.As(err, &unknown) || len(refused.UnverifiedCertificates) != 1 {
		t.Errorf("%v", err)
	}
}

func TestHTTPClientUnderTheRule(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "answered") }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{serverCertificate(selfSigned, "anything.example")}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	transport := &http.Transport{
		TLSClientConfig:   loadForTLS(t, Options{Name: "development"}).TLSConfig(),
		ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	answer, err := client.Get("https://blossom.hostr.development/x")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if _, err := client.Get("https://blossom.hostr.network/x"); err == nil {
		t.Error("the client accepted a self-signed certificate of another host")
	}
}

func loadForTLS(t *testing.T, options Options) Environment {
	t.Helper()
	if options.Getenv == nil {
		options.Getenv = noEnvironment
	}
	loaded, err := Load(options)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func skipWithoutTestRoots(t *testing.T, kind certificateKind) {
	t.Helper()
	if kind == trusted && (runtime.GOOS == "darwin" || runtime.GOOS == "windows") {
		t.Skip("this system takes its roots from elsewhere than SSL_CERT_FILE")
	}
}

func checkHandshake(t *testing.T, config *tls.Config, certificate tls.Certificate, accepted bool) {
	t.Helper()
	err := shakeHands(t, config, certificate)
	if (err == nil) != accepted {
		t.Errorf("handshake: %v, want accepted %v", err, accepted)
	}
}

// shakeHands connects to a TLS server on loopback and returns the client's error.
func shakeHands(t *testing.T, config *tls.Config, certificate tls.Certificate) error {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(io.Discard, conn)
	}()
	defer func() {
		listener.Close()
		<-served
	}()
	conn, err := net.DialTimeout("tcp", listener.Addr().String(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return tls.Client(conn, config).Handshake()
}
