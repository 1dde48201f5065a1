package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/daemon"
	"hostr-daemon/internal/redact"
)

// FuzzFrames: whatever bytes come in, every line that is not blank gets exactly one
// answer, and only whole lines of valid JSON go out, whatever the pieces the input
// comes in.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		`{"id":"1","method":"describe"}` + "\n" + `{"id":2,"method":"callAction","params":{"action":"x"}}`,
		"\ufeff\r\n\n\r{}\r[1]\n\"x\n\x00\n\xff\xfe\n  \n",
		`{"id":1,"method":"callAction","params":{"action":"x"}}` + "\r" + `{"id":3,"method":"cancel","params":{"requestId":1}}`,
		`{"id":"a` + "\u2028" + `b","method":"nope","traceId":"` + "\u2029" + `"}`,
		`{"id":1,"method":"uploadImage","params":{"base64":"` + strings.Repeat("QUJD", 100) + `"}}`,
		`{"id":1,"method":"logoutSession","params":{"pubkey":"p"}}{"id":1}` + "\n" + `{"id":{},"method":"completeOAuthNsec","params":{"requestId":"r","nsec":"n"}}`,
		`{"id":1,"method":"completeOAuthNostrConnect","params":{"requestId":[1],"timeoutSeconds":1e99}}`,
		strings.Repeat("[", 20_000) + "\n{}",
		strings.Repeat("x", 70_000) + "\n" + strings.Repeat("y", 300),
		"\xc2\x85\n\xe2\x80\xa8\n\u00a0\n",
	} {
		f.Add([]byte(seed), uint8(0))
		f.Add([]byte(seed), uint8(1))
	}
	f.Fuzz(func(t *testing.T, input []byte, pieces uint8) {
		var in io.Reader = bytes.NewReader(input)
		switch pieces % 4 {
		case 1:
			in = iotest.OneByteReader(in)
		case 2:
			in = iotest.HalfReader(in)
		case 3:
			in = iotest.DataErrReader(in)
		}
		var out bytes.Buffer
		var log bytes.Buffer
		d := daemon.New(daemon.Config{
			Product: &product{}, Environment: "test", Logger: zerolog.New(zerolog.SyncWriter(redact.Writer(&log))), In: in, Out: &out,
			Limits: daemon.Limits{LineBytes: 100_000},
		})
		if err := d.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		answers := 0
		for line := range bytes.Lines(out.Bytes()) {
			answers++
			checkLine(t, line)
		}
		if requests := countRequests(input, 100_000); answers != requests {
			t.Fatalf("%d answers to %d requests in %q:\n%s", answers, requests, input, out.String())
		}
		for line := range bytes.Lines(log.Bytes()) {
			checkLine(t, line)
		}
	})
}

func checkLine(t *testing.T, line []byte) {
	t.Helper()
	if !json.Valid(line) || !utf8.Valid(line) || line[0] != '{' || line[len(line)-1] != '\n' || bytes.ContainsAny(line[:len(line)-1], "\r\u2028\u2029") {
		t.Fatalf("bad line %q", line)
	}
}

// countRequests splits the plain way.
func countRequests(input []byte, limit int) int {
	text := strings.ReplaceAll(strings.ReplaceAll(string(input), "\r\n", "\n"), "\r", "\n")
	count := 0
	for i, line := range strings.Split(text, "\n") {
		if i == 0 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if len(line) > limit || strings.TrimSpace(strings.ToValidUTF8(line, "\ufffd")) != "" {
			count++
		}
	}
	return count
}
