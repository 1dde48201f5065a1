package imagesource_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/imagesource"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	png = "\x89PNG\r\n\x1a\nand the rest"
	svg = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`
)

var pngBase64 = base64.StdEncoding.EncodeToString([]byte(png))

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newReader(t testing.TB, config imagesource.Config) *imagesource.Reader {
	t.Helper()
	reader := imagesource.New(config)
	t.Cleanup(reader.Close)
	return reader
}

// publicReader reads from this machine as from the public web, and nothing private.
func publicReader(t testing.TB, config imagesource.Config) *imagesource.Reader {
	t.Helper()
	reader := newReader(t, config)
	reader.TreatLoopbackAsPublic()
	return reader
}

func anyNumber(int) error { return nil }

func read(t testing.TB, reader *imagesource.Reader, reference imagesource.Reference) (imagesource.Image, error) {
	t.Helper()
	source, err := reader.Resolve(reference)
	if err != nil {
		return imagesource.Image{}, err
	}
	return reader.Read(patient(t), source, anyNumber)
}

func serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// answer serves one thing.
func answer(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil // no guess of net/http
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		_, _ = w.Write([]byte(body))
	}
}

func wantFailure(t testing.TB, err error, code fault.Code, path string) *fault.Error {
	t.Helper()
	var failure *fault.Error
	if !errors.As(err, &failure) || failure.Code != code || failure.Path != path || failure.Retryable {
		t.Fatalf("got %+v (%v), want %s at %q", failure, err, code, path)
	}
	return failure
}

// resolverOf resolves every name to the addresses, one after the other, the last one
// for ever: to a DNS server that changes its mind.
func resolverOf(t testing.TB, addresses ...string) (resolver *net.Resolver, asked *atomic.Int32) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int32)
	served := make(chan struct{})
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	go func() {
		defer close(served)
		packet := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(dnsAnswer(packet[:n], addresses, asked), from)
		}
	}()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}
	return &net.Resolver{PreferGo: true, Dial: dial}, asked
}

// dnsAnswer answers a query for A with the next address and any other with nothing
// (RFC 1035 §4.1).
func dnsAnswer(query []byte, addresses []string, asked *atomic.Int32) []byte {
	question := query[12:]
	end := 0
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	question = question[:end+5]
	reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	if binary.BigEndian.Uint16(question[end+1:]) != 1 {
		return reply
	}
	reply[7] = 1
	next := addresses[min(int(asked.Add(1)), len(addresses))-1]
	address := netip.MustParseAddr(next).As4()
	return append(append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), address[:]...)
}
