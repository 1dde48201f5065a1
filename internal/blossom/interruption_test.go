package blossom_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hostr-daemon/internal/blossom"
	"hostr-daemon/internal/fault"
)

// A server that fails in the middle of an upload costs that attempt: the next one gets
// the whole blob, under the same authorization.
func TestServersThatFailInTheMiddle(t *testing.T) {
	t.Parallel()
	blob := blossom.NewBlob(make([]byte, 8<<20), "image/png", "")
	hangUp := func(reads int64, before func(http.ResponseWriter)) http.HandlerFunc {
		return func(w http.ResponseWriter, request *http.Request) {
			_, _ = io.CopyN(io.Discard, request.Body, reads)
			before(w)
			panic(http.ErrAbortHandler)
		}
	}
	nothing := func(http.ResponseWriter) {}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		error   string // "": one of several, by what the system notices first
	}{
		"hangs up while it reads":    {hangUp(100_000, nothing), ""},
		"hangs up when it has all":   {hangUp(8<<20, nothing), "EOF"},
		"hangs up while it answers":  {hangUp(8<<20, beginAnswer), "the answer broke off: unexpected EOF"},
		"internal error behind all":  {statusBehind(8<<20, http.StatusInternalServerError), "HTTP 500"},
		"overloaded behind all":      {statusBehind(8<<20, http.StatusServiceUnavailable), "HTTP 503"},
		"internal error, no reading": {statusBehind(0, http.StatusInternalServerError), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing := startHandler(t, test.handler)
			taking := startServer(t, nil)
			got, err := newClient(t, failing, taking.URL).Upload(testContext(t), blob, localSigner{accountKey})
			if err != nil || got.ServerURL != taking.URL || got.SHA256 != blob.SHA256() || got.Size != 8<<20 {
				t.Errorf("got %+v, %v", got, err)
			}
			_, err = newClient(t, failing).Upload(testContext(t), blob, localSigner{accountKey})
			failures, _ := codedError(t, err, fault.ImageUploadFailed).Details.([]blossom.Failure)
			if len(failures) != 1 || failures[0].Success || failures[0].ServerURL != failing || failures[0].Error == "" || !strings.Contains(failures[0].Error, test.error) {
				t.Errorf("failures %+v, want %q", failures, test.error)
			}
		})
	}
}

// startHandler serves without reading first, as startServer does.
func startHandler(t testing.TB, handler http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// beginAnswer sends the half of a descriptor.
func beginAnswer(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"url":"https://`)
	w.(http.Flusher).Flush()
}

func statusBehind(reads int64, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.CopyN(io.Discard, request.Body, reads)
		w.WriteHeader(status)
	}
}

// A server that stops reading, or starts an answer and leaves it at that, is given up
// after its time.
func TestServersThatStall(t *testing.T) {
	t.Parallel()
	blob := blossom.NewBlob(make([]byte, 16<<20), "image/png", "")
	for name, reads := range map[string]int64{"while it reads": 100_000, "while it answers": 16 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			stalling := startHandler(t, func(w http.ResponseWriter, request *http.Request) {
				_, _ = io.CopyN(io.Discard, request.Body, reads)
				if reads == 16<<20 {
					beginAnswer(w)
				}
				<-release
			})
			t.Cleanup(func() { close(release) })
			client := newClient(t, stalling)
			client.SetServerTimeout(time.Second)
			_, err := client.Upload(testContext(t), blob, localSigner{accountKey})
			if coded := codedError(t, err, fault.ImageUploadFailed); !strings.Contains(coded.Message, "no answer in time") {
				t.Errorf("message: %s", coded.Message)
			}
		})
	}
}
