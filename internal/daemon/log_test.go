package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/daemon"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/redact"
	"hostr-daemon/internal/request"
)

// TestLogLines checks the events and their keys (spec 10 §7.1).
func TestLogLines(t *testing.T) {
	t.Parallel()
	problem := fault.New(fault.PendingSwaps, "one swap is open").At("pubkey").Transient().WithDetails(object{"n": 1, "preimage": "x"})
	p := newPeer(t, &product{
		logout: func(context.Context, string) (request.Outcome, error) { return request.Outcome{}, problem },
		call: func(context.Context, request.Action) (request.Outcome, error) {
			return outcome(object{"qrImage": "q", "long": strings.Repeat("ab ", 1000)})
		},
	})
	for _, line := range []string{
		`{"id":"1","traceId":"t","method":"callAction","params":{"action":"x","notificationToken":"n","input":{"nsec":"n"}}}`,
		`{"id":2,"method":"logoutSession","params":{"pubkey":"p"}}`,
		`{"id":{"a":3},"method":"nope","params":{"nsec":"n"}}`,
		`{"id":4,"method":"cancel","params":{"requestId":"9"}}`,
		`{"id":5,"method":"cancel"}`,
		`nope`,
	} {
		p.send(line)
		p.next()
	}
	p.finish()
	var got []object
	for line := range strings.Lines(p.log.String()) {
		var fields object
		mustDecode(t, json.RawMessage(line), &fields)
		got = append(got, fields)
	}
	envelope := object{"ok": true, "command": "x", "environment": "test", "dryRun": false, "traceId": "t",
		"data": object{"qrImage": "[redacted]", "long": strings.Repeat("ab ", 1000)[:1000] + "... [truncated 3000 chars]"}}
	want := []object{
		{"level": "info", "event": "request", "id": "1", "traceId": "t", "method": "callAction", "params": object{"action": "x", "notificationToken": "[redacted]", "input": object{"nsec": "[redacted]"}}},
		{"level": "info", "event": "response", "id": "1", "traceId": "t", "method": "callAction", "elapsedMs": 0., "result": envelope},
		{"level": "info", "event": "request", "id": 2., "method": "logoutSession", "params": object{"pubkey": "p"}},
		{"level": "warn", "event": "error", "id": 2., "method": "logoutSession", "code": "pending_swaps", "message": "one swap is open", "path": "pubkey", "retryable": true, "details": object{"n": 1., "preimage": "[redacted]"}},
		{"level": "warn", "event": "error", "id": object{"a": 3.}, "method": "nope", "code": "unknown_method", "message": `there is no method "nope"`, "retryable": false},
		{"level": "info", "event": "cancel", "id": 4., "requestId": "9", "found": false},
		{"level": "warn", "event": "cancelError", "message": "the parameter requestId is missing or blank"},
		{"level": "warn", "event": "error", "id": 5., "method": "cancel", "code": "missing_param", "message": "the parameter requestId is missing or blank", "path": "requestId", "retryable": false},
		{"level": "warn", "event": "error", "id": nil, "code": "unexpected_error", "message": "not valid JSON at byte 0: expected a value, found 'n'", "retryable": false},
	}
	for _, fields := range got {
		if fields["event"] == "response" {
			fields["elapsedMs"] = 0. // it may take a while
		}
		delete(fields, "queueMs") // there is one only where a request waited a whole millisecond
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// TestQueueTimeAndCancelIsLogged plays in a bubble with a clock of its own.
func TestQueueTimeAndCancelIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlocker()
		p := newPeer(t, &product{call: b.call}, withLimits(daemon.Limits{Slots: 1}))
		p.send(callLine(1, "x"), callLine(2, "y"), `{"id":3,"traceId":"t","method":"callAction","params":{"action":"z"}}`, cancelLine("c", 3))
		<-p.frames
		<-p.frames
		synctest.Wait()
		time.Sleep(7 * time.Second) // of the bubble's clock
		close(b.release)
		<-p.frames
		<-p.frames
		p.finish()
		var queued, elapsed []any
		for _, event := range p.log.events(t, "request") {
			queued = append(queued, event["queueMs"])
		}
		for _, event := range p.log.events(t, "response") {
			elapsed = append(elapsed, event["elapsedMs"])
		}
		if diff := cmp.Diff([]any{nil, 7000.}, queued); diff != "" {
			t.Errorf("queueMs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]any{7000., 0.}, elapsed); diff != "" {
			t.Errorf("elapsedMs (-want +got):\n%s", diff)
		}
		want := []object{{"level": "info", "event": "cancelled", "id": 3., "traceId": "t", "message": "the request was cancelled"}}
		if diff := cmp.Diff(want, p.log.events(t, "cancelled")); diff != "" {
			t.Errorf("cancelled (-want +got):\n%s", diff)
		}
	})
}

// canaries are secrets of every shape; core is what must be seen nowhere.
var canaries = []struct{ text, core string }{
	{"nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5", "vl029mgpspedva04"},
	{"bunker://ab?secret=0canary0", "0canary0"},
	{"nostrconnect://ab?secret=0canary0", "0canary0"},
	{"nostr+walletconnect://ab?secret=0canary0", "0canary0"},
	{"Bearer 0canary0", "0canary0"},
	{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIwY2FuYXJ5MCJ9.c2ln", "eyJzdWIiOiIwY2FuYXJ5MCJ9"},
	{"https://user:0canary0@relay.example/?apikey=0canary0", "0canary0"},
	{"private key: " + strings.Repeat("0ca4a570", 8), "0ca4a5700ca4a570"},
	{"data:image/png;base64,MGNhbmFyeTA=", "MGNhbmFyeTA"},
	{strings.Repeat("MGNhbmFyeTAK", 30), "MGNhbmFyeTAKMGNh"},
}

// TestNoCanaryInTheLog sends secrets through every method, every parameter and
// every way to fail, and looks for them in the log, in error messages and hints.
func TestNoCanaryInTheLog(t *testing.T) {
	t.Parallel()
	for _, canary := range canaries {
		t.Run(canary.text[:8], func(t *testing.T) {
			t.Parallel()
			fail := func(what string) (request.Outcome, error) {
				switch what {
				case "panic":
					panic(errors.New(canary.text))
				case "encode":
					return outcome(object{"x": failing{canary.text}})
				case "coded":
					return request.Outcome{}, fault.New(fault.NotFound, "no %s here", canary.text).WithHint("try " + canary.text).WithDetails(object{"x": canary.text})
				case "result":
					return request.Outcome{Data: object{"x": canary.text, "y": []any{object{canary.text: canary.text}}},
						Warnings: []*fault.Error{fault.New(fault.PartialResult, "no %s", canary.text)}}, nil
				default:
					return request.Outcome{}, fmt.Errorf("dial: %w", errors.New(canary.text))
				}
			}
			mode := ""
			log := &logBuffer{}
			redacted := func(c *daemon.Config) { c.Logger = zerolog.New(redact.Writer(log)) }
			p := newPeer(t, &product{
				describe: func(context.Context) (json.RawMessage, error) { _, err := fail("error"); return nil, err },
				visible:  func(context.Context, string) (any, error) { return fail("error") },
				call:     func(context.Context, request.Action) (request.Outcome, error) { return fail(mode) },
				upload:   func(context.Context, request.Upload) (request.Outcome, error) { return fail(mode) },
				logout:   func(context.Context, string) (request.Outcome, error) { return fail(mode) },
				start:    func(context.Context, request.OAuthNostrConnect) (request.Outcome, error) { return fail(mode) },
				complete: func(context.Context, request.OAuthNostrConnect) (request.Outcome, error) { return fail(mode) },
				nsec:     func(context.Context, request.OAuthNSec) (request.Outcome, error) { return fail(mode) },
			}, redacted)
			quoted, err := json.Marshal(canary.text)
			if err != nil {
				t.Fatal(err)
			}
			text := string(quoted)
			params := `"base64":` + text + `,"requestId":` + text + `,"pubkey":` + text + `,"nsec":` + text + `,"input":{"x":[` + text + `]},"mime":` + text + `,"other":{"y":` + text + `,` + text + `:1}`
			for _, mode = range []string{"error", "coded", "panic", "encode", "result"} {
				for _, method := range []string{"describe", "visibleActions", "callAction", "uploadImage", "logoutSession", "startOAuthNostrConnect", "completeOAuthNostrConnect", "completeOAuthNsec", "cancel", "nope"} {
					p.send(`{"id":1,"method":"` + method + `","params":{"action":"x",` + params + `}}`)
					checkSentences(t, p.next(), canary.core)
				}
			}
			for _, line := range []string{
				`{"id":` + text + `,"traceId":` + text + `,"method":` + text + `,"params":{` + params + `}}`,
				`{"id":` + text + `,"traceId":` + text + `,"method":"callAction","params":{"action":` + text + `}}`,
				`{"id":` + text + `,"method":"cancel","params":{"requestId":` + text + `}}`,
				text, `[` + text + `]`, `{"id":1,"nsec":` + text + `x`, `{"id":1,"x":"` + canary.text,
			} {
				p.send(line)
				checkSentences(t, p.next(), canary.core)
			}
			p.daemon.Notify(canary.text, []string{canary.text})
			p.finish()
			if log.String() == "" {
				t.Error("there is no log")
			}
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, canary.core) {
					t.Errorf("the log shows it: %s", line)
				}
			}
		})
	}
}

// checkSentences looks for a secret in what a frame says in words. Its id, trace id
// and result are the caller's and the product's own.
func checkSentences(t *testing.T, line, core string) {
	t.Helper()
	f := parse(t, line)
	issues := []issue{}
	if f.Error != nil {
		issues = append(issues, *f.Error)
	} else if strings.Contains(string(f.Result), `"environment"`) {
		e := f.envelope(t)
		issues = append(append(issues, e.Errors...), e.Warnings...)
	}
	for _, i := range issues {
		if strings.Contains(i.Message+i.Hint, core) {
			t.Errorf("a message shows it: %+v", i)
		}
	}
}

type failing struct{ text string }

func (f failing) MarshalJSON() ([]byte, error) { return nil, errors.New(f.text) }

// TestLogLinesAreBounded whatever a request holds.
func TestLogLinesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 200_000)
	p := newPeer(t, &product{call: func(context.Context, request.Action) (request.Outcome, error) {
		return outcome(object{"list": strings.Split(long, " ")})
	}})
	for _, line := range []string{
		`{"id":"` + long + `","traceId":"` + long + `","method":"` + long + `","params":{"x":"` + long + `"}}`,
		`{"id":["` + strings.ReplaceAll(long, " ", `","`) + `"],"method":"callAction","params":{"action":"` + long + `","input":["` + strings.ReplaceAll(long, " ", `","`) + `"]}}`,
		`{"id":1,"method":"cancel","params":{"requestId":"` + long + `"}}`,
	} {
		p.send(line)
		p.next()
	}
	p.finish()
	for line := range strings.Lines(p.log.String()) {
		if len(line) > 20_000 {
			t.Errorf("a line of %d bytes: %.200s", len(line), line)
		}
	}
}

// TestEscapesHideNoSecretInTheLog: what stands at the head of a line is decoded before
// it is cut and quoted again.
func TestEscapesHideNoSecretInTheLog(t *testing.T) {
	t.Parallel()
	const key = "0ca4a5700ca4a5700ca4a5700ca4a5700ca4a5700ca4a5700ca4a5700ca4a570"
	const nsec = "vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
	whole := ""
	for _, b := range []byte("nsec1" + nsec) {
		whole += fmt.Sprintf(`\\u%04x`, b)
	}
	log := &logBuffer{}
	p := newPeer(t, &product{}, func(c *daemon.Config) { c.Logger = zerolog.New(redact.Writer(log)) })
	for _, pad := range []string{"", strings.Repeat("p ", 70)} {
		hidden := `{"p\u0061ssword":"0canary0 \"0canary0\" x","q":"` + pad + `"}`
		for _, line := range []string{
			`{"id":"n\u0073ec1` + nsec + ` ` + pad + `","method":"describe"}`,
			`{"id":{"\u006esec":"` + key + `","pad":"` + pad + `"},"method":"zz"}`,
			`{"id":{"pri\u0076ateKey":["0canary0"],"pad":"` + pad + `"},"method":"zz"}`,
			`{"id":"bunk\u0065r://ababab?relay=x&s\u0065cret=0canary0 ` + pad + `","method":"zz"}`,
			`{"id":"\"` + whole + `\"","method":"describe"}`,
			`{"id":"sk/` + key + ` ` + pad + `","traceId":"sk/` + key + `","method":"describe"}`,
			`{"id":` + hidden + `,"method":"describe"}`,
			`{"id":1,"method":` + hidden + `}`,
			`{"id":1,"method":"describe","traceId":` + hidden + `}`,
			`{"id":1,"method":"cancel","params":{"requestId":` + hidden + `}}`,
			`{"id":1,"method":"callAction","params":{"action":` + hidden + `}}`,
			`{"id":1,"method":"visibleActions","params":{"pubkey":` + hidden + `}}`,
			`{"id":1,"method":"logoutSession","params":{"pubkey":` + hidden + `}}`,
		} {
			p.send(line)
			p.next()
		}
	}
	p.finish()
	for line := range strings.Lines(log.String()) {
		for _, core := range []string{"0canary0", nsec[:20], key[:32], `u0076`, `u006c`} {
			if strings.Contains(line, core) {
				t.Errorf("the log shows %s: %s", core, line)
			}
		}
	}
}

// TestCatalogLinesAreShort: the same text comes with every describe.
func TestCatalogLinesAreShort(t *testing.T) {
	t.Parallel()
	list := object{"list": strings.Split(strings.Repeat("action,", 5000), ",")}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	p := newPeer(t, &product{
		describe: func(context.Context) (json.RawMessage, error) { return text, nil },
		visible:  func(context.Context, string) (any, error) { return list, nil },
	})
	p.send(`{"id":1,"method":"describe"}`)
	p.next()
	p.send(`{"id":1,"method":"visibleActions"}`)
	p.next()
	p.finish()
	for line := range strings.Lines(p.log.String()) {
		if len(line) > 1500 {
			t.Errorf("a line of %d bytes: %.200s", len(line), line)
		}
	}
	if found := len(p.log.events(t, "response")); found != 2 {
		t.Errorf("%d responses are logged", found)
	}
}
