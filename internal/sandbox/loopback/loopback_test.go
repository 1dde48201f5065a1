package loopback

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCloseEndsRequestsUnderWay(t *testing.T) {
	t.Parallel()
	entered, left := make(chan struct{}), make(chan struct{})
	server, err := Serve(0, http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		close(entered)
		<-request.Context().Done()
		close(left)
	}), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(server.URL(), "http://127.0.0.1:") {
		t.Errorf("URL %s", server.URL())
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	failed := make(chan error, 1)
	go func() {
		response, err := client.Get(server.URL())
		if err == nil {
			_ = response.Body.Close()
		}
		failed <- err
	}()
	<-entered
	if err := server.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	select {
	case <-left:
	default:
		t.Error("Close returned before the request had ended")
	}
	if err := <-failed; err == nil {
		t.Error("the request succeeded")
	}
	if _, err := client.Get(server.URL()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a closed server: %v", err)
	}
}

func TestServeReportsATakenPort(t *testing.T) {
	t.Parallel()
	server, err := Serve(0, http.NotFoundHandler(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var port int
	if _, err := fmt.Sscanf(server.URL(), "http://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	if second, err := Serve(port, http.NotFoundHandler(), zerolog.Nop()); err == nil {
		_ = second.Close()
		t.Error("two servers on one port")
	}
}
