package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/trace"
)

// TestFrames sends one line each and compares the frame as it travels (spec 10
// §2, §3).
func TestFrames(t *testing.T) {
	t.Parallel()
	p := newPeer(t, &product{})
	for name, test := range map[string]struct{ line, want string }{
		"not JSON": {`nope`,
			`{"id":null,"error":{"code":"unexpected_error","message":"not valid JSON at byte 0: expected a value, found 'n'","hint":"Send one JSON object per line.","retryable":false}}`},
		"cut JSON": {`{"id":1`,
			`{"id":null,"error":{"code":"unexpected_error","message":"not valid JSON at byte 7: expected ',' or '}', but the text ends","hint":"Send one JSON object per line.","retryable":false}}`},
		"no object": {`[1]`,
			`{"id":null,"error":{"code":"invalid_request","message":"a request must be a JSON object","hint":"Send {\"id\": …, \"method\": …, \"params\": {…}} on one line.","retryable":false}}`},
		"unknown method": {`{"id":"a","traceId":"t","method":"nope"}`,
			`{"id":"a","traceId":"t","error":{"code":"unknown_method","message":"there is no method \"nope\"","hint":"Send describe to see what there is to call.","retryable":false}}`},
		"method of another kind": {`{"id":"a","method":{"a":5}}`,
			`{"id":"a","error":{"code":"unknown_method","message":"there is no method \"{\"a\":5}\"","hint":"Send describe to see what there is to call.","retryable":false}}`},
		"no method": {`{"id":"a"}`,
			`{"id":"a","error":{"code":"unknown_method","message":"the request names no method","hint":"Send describe to see what there is to call.","retryable":false}}`},
		"missing parameter": {`{"id":"a","method":"callAction","params":{"action":" "}}`,
			`{"id":"a","error":{"code":"missing_param","message":"the parameter action is missing or blank","path":"action","retryable":false}}`},
		"params that are no object": {`{"id":"a","method":"uploadImage","params":["base64"]}`,
			`{"id":"a","error":{"code":"missing_param","message":"the parameter base64 is missing or blank","path":"base64","retryable":false}}`},
		"cancel without requestId": {`{"id":"a","method":"cancel","params":{}}`,
			`{"id":"a","error":{"code":"missing_param","message":"the parameter requestId is missing or blank","path":"requestId","retryable":false}}`},
		"cancel of nothing": {`{"id":"a","method":"cancel","params":{"requestId":" é\u2028 "}}`,
			`{"id":"a","result":{"cancelled":false,"requestId":"é"}}`},
		"cancel by number": {`{"id":"a","traceId":7,"method":"cancel","params":{"requestId":7.50}}`,
			`{"id":"a","traceId":"7","result":{"cancelled":false,"requestId":"7.50"}}`},
		"describe": {`{"id":"a","traceId":" t ","method":"describe","params":{"x":1}}`,
			`{"id":"a","traceId":"t","result":{"version":1,"actions":[]}}`},
		"visibleActions": {`{"id":"a","method":"visibleActions","params":{"pubkey":" ab "}}`,
			`{"id":"a","result":{"pubkey":"ab","version":1}}`},
		"callAction": {`{"id":"a","method":"callAction","params":{"traceId":"from params","action":" x "}}`,
			`{"id":"a","traceId":"from params","result":{"ok":true,"command":"x","environment":"test","dryRun":false,"traceId":"from params","data":{"action":"x"}}}`},
		"uploadImage": {`{"id":"a","method":"uploadImage","params":{"base64":" QUJD "}}`,
			`{"id":"a","result":{"ok":true,"command":"hostr.upload.image","environment":"test","dryRun":false,"data":{"size":4}}}`},
		"logoutSession": {`{"id":"a","method":"logoutSession","params":{"pubkey":"ab"}}`,
			`{"id":"a","result":{"ok":true,"command":"hostr.session.logout","environment":"test","dryRun":false,"data":{"pubkey":"ab","signedOut":true}}}`},
		"startOAuthNostrConnect": {`{"id":"a","method":"startOAuthNostrConnect","params":{"requestId":5,"regenerate":true}}`,
			`{"id":"a","result":{"ok":true,"command":"oauth.nostr_connect.start","environment":"test","dryRun":false,"data":{"regenerate":true,"requestId":"5"}}}`},
		"completeOAuthNostrConnect": {`{"id":"a","method":"completeOAuthNostrConnect","params":{"requestId":"r"}}`,
			`{"id":"a","result":{"ok":true,"command":"oauth.nostr_connect.complete","environment":"test","dryRun":false,"data":{"requestId":"r","seconds":180}}}`},
		"completeOAuthNsec": {`{"id":"a","method":"completeOAuthNsec","params":{"requestId":"r","nsec":"n"}}`,
			`{"id":"a","result":{"ok":true,"command":"oauth.nsec.complete","environment":"test","dryRun":false,"data":{"requestId":"r"}}}`},
		"completeOAuthNsec without nsec": {`{"id":"a","method":"completeOAuthNsec","params":{"requestId":"r","nsec":null}}`,
			`{"id":"a","error":{"code":"missing_param","message":"the parameter nsec is missing or blank","path":"nsec","retryable":false}}`},
		"keys with escapes and twice": {`{"id":"b","\u0069d":"a","method":"callAction","params":{"action":"y","a\u0063tion":"x"}}`,
			`{"id":"a","result":{"ok":true,"command":"x","environment":"test","dryRun":false,"data":{"action":"x"}}}`},
	} {
		p.send(test.line)
		if got := p.next(); got != test.want {
			t.Errorf("%s: %s\n got %s\nwant %s", name, test.line, got, test.want)
		}
	}
	p.finish()
}

func TestIDIsEchoedAsSent(t *testing.T) {
	t.Parallel()
	p := newPeer(t, &product{})
	for _, test := range []struct{ id, want string }{
		{`"id":"12",`, `"12"`},
		{`"id":7,`, `7`},
		{`"id":7.00,`, `7.00`},
		{`"id":123456789012345678901234567890,`, `123456789012345678901234567890`},
		{`"id":-1e400,`, `-1e400`},
		{`"id":null,`, `null`},
		{`"id":true,`, `true`},
		{``, `null`},
		{`"id":"",`, `""`},
		{`"id":{"b": [1, 2],"a":"x"},`, `{"b": [1, 2],"a":"x"}`},
		{`"id":"\u0041\/\ud800<&>",`, `"\u0041\/\ud800<&>"`},
		{"\"id\":\"a\u2028b\u2029c\",", `"a\u2028b\u2029c"`},
		{"\"id\":\"a\xffb\",", "\"a\ufffdb\""},
		{`"id":"` + strings.Repeat("long ", 30_000) + `",`, `"` + strings.Repeat("long ", 30_000) + `"`},
	} {
		for _, line := range []string{`{` + test.id + `"method":"nope"}`, `{` + test.id + `"method":"cancel","params":{"requestId":"x"}}`, `{` + test.id + `"method":"callAction","params":{"action":"x"}}`} {
			p.send(line)
			if got := p.next(); !strings.HasPrefix(got, `{"id":`+test.want+`,"`) {
				t.Errorf("%.200s: answered %.200s", line, got)
			}
		}
	}
	p.finish()
}

func TestLineForms(t *testing.T) {
	t.Parallel()
	p := newPeer(t, &product{})
	text := "\ufeff" + `{"id":1,"method":"cancel","params":{"requestId":"x"}}` + "\r\n" +
		"\n \t \r\r\n\u00a0\u2003\n" +
		`{"id":2,"method":"cancel","params":{"requestId":"x"}}` + "\r" +
		` {"id":3,"method":"cancel","params":{"requestId":"x"}} ` + "\n\r" +
		"\x00\n" +
		"\ufeff{}\n" +
		`{"id":4,"method":"cancel","params":{"requestId":"` + "a\xc3\x28\xff" + `"}}` + "\n" +
		`{"id":5,"method":"cancel","params":{"requestId":"x"}}`
	go func() {
		_, _ = p.in.Write([]byte(text))
		p.in.Close()
	}()
	for _, want := range []string{
		`{"id":1,"result":{"cancelled":false,"requestId":"x"}}`,
		`{"id":2,"result":{"cancelled":false,"requestId":"x"}}`,
		`{"id":3,"result":{"cancelled":false,"requestId":"x"}}`,
		`{"id":null,"error":{"code":"unexpected_error","message":"not valid JSON at byte 0: expected a value, found byte 0x00","hint":"Send one JSON object per line.","retryable":false}}`,
		`{"id":null,"error":{"code":"unexpected_error","message":"not valid JSON at byte 0: expected a value, found byte 0xef","hint":"Send one JSON object per line.","retryable":false}}`,
		"{\"id\":4,\"result\":{\"cancelled\":false,\"requestId\":\"a\ufffd(\ufffd\"}}",
		`{"id":5,"result":{"cancelled":false,"requestId":"x"}}`,
	} {
		p.expect(want)
	}
	p.finish()
}

func TestDeepNestingCostsOneLine(t *testing.T) {
	t.Parallel()
	p := newPeer(t, &product{})
	for _, line := range []string{strings.Repeat("[", 1_000_000), `{"id":1,"method":"callAction","params":` + strings.Repeat(`{"a":`, 1_000_000)} {
		p.send(line)
		f := parse(t, p.next())
		if string(f.ID) != "null" || f.Error == nil || f.Error.Code != "unexpected_error" || !strings.Contains(f.Error.Message, "nested deeper") {
			t.Errorf("%.20s…: %+v", line, f)
		}
	}
	p.send(`{"id":2,"method":"describe"}`)
	p.next()
	p.finish()
}

func TestParametersReachTheProduct(t *testing.T) {
	t.Parallel()
	var got string
	note := func(value any) (request.Outcome, error) { got = fmt.Sprintf("%+v", value); return outcome(object{}) }
	p := newPeer(t, &product{
		call: func(_ context.Context, call request.Action) (request.Outcome, error) {
			return note([]string{call.ID, call.Pubkey, string(call.Input), call.NotificationToken, call.TraceID})
		},
		upload:   func(_ context.Context, upload request.Upload) (request.Outcome, error) { return note(upload) },
		start:    func(_ context.Context, start request.OAuthNostrConnect) (request.Outcome, error) { return note(start) },
		complete: func(_ context.Context, c request.OAuthNostrConnect) (request.Outcome, error) { return note(c.Timeout) },
		nsec:     func(_ context.Context, complete request.OAuthNSec) (request.Outcome, error) { return note(complete) },
	})
	seconds := func(value string) string {
		return `{"id":1,"method":"completeOAuthNostrConnect","params":{"requestId":"r","timeoutSeconds":` + value + `}}`
	}
	for _, test := range []struct{ line, want string }{
		{`{"id":1,"traceId":"t","method":"callAction","params":{"action":"a","pubkey":" p ","input":{"x": [1]},"notificationToken":" n "}}`, `[a p {"x": [1]} n t]`},
		{`{"id":1,"method":"callAction","params":{"action":5,"pubkey":"","input":[1],"notificationToken":null}}`, `[5  {}  ]`},
		{`{"id":1,"method":"callAction","params":{"action":true,"pubkey":{"a":1},"input":"{}"}}`, `[true {"a":1} {}  ]`},
		{`{"id":1,"method":"uploadImage","params":{"base64":"QU\/JD","pubkey":"p","mime":"m","filename":"f\n"}}`, `{Base64:QU/JD Pubkey:p MIME:m Filename:f}`},
		{`{"id":1,"method":"startOAuthNostrConnect","params":{"requestId":"r","regenerate":"true"}}`, `{RequestID:r Regenerate:false Timeout:0s}`},
		{`{"id":1,"method":"startOAuthNostrConnect","params":{"requestId":"r","regenerate":true}}`, `{RequestID:r Regenerate:true Timeout:0s}`},
		{`{"id":1,"method":"completeOAuthNsec","params":{"requestId":"r","nsec":"n"}}`, `{RequestID:r NSec:n}`},
		{seconds(`5`), `5s`}, {seconds(`5.9`), `5s`}, {seconds(`0`), `1s`}, {seconds(`-7`), `1s`}, {seconds(`1e3`), `10m0s`},
		{seconds(`1e999`), `10m0s`}, {seconds(`-1e999`), `1s`}, {seconds(`99999999999999999999`), `10m0s`},
		{seconds(`" 0x1F "`), `31s`}, {seconds(`"+7"`), `7s`}, {seconds(`"-0x1"`), `1s`}, {seconds(`"7.5"`), `3m0s`}, {seconds(`"--7"`), `3m0s`},
		{seconds(`"0x"`), `3m0s`}, {seconds(`""`), `3m0s`}, {seconds(`null`), `3m0s`}, {seconds(`true`), `3m0s`}, {seconds(`[5]`), `3m0s`},
	} {
		p.send(test.line)
		p.next()
		if got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.line, got, test.want)
		}
	}
	p.finish()
}

func TestEnvelopes(t *testing.T) {
	t.Parallel()
	warning := fault.New(fault.PartialResult, "two relays did not answer").Transient()
	full := fault.New(fault.InvalidInput, "limit must be a number").At("limit").WithHint("limit: 20").Transient().WithDetails(object{"problems": []int{1}})
	for name, test := range map[string]struct {
		outcome request.Outcome
		err     error
		want    string // after "id":1,
	}{
		"data":                    {outcome: request.Outcome{Data: object{"a": "<&>\u2028"}, DryRun: true}, want: `"result":{"ok":true,"command":"x","environment":"test","dryRun":true,"data":{"a":"<&>\u2028"}}`},
		"raw data":                {outcome: request.Outcome{Data: json.RawMessage("{\"a\":\n[1,\"\u2028\xff\"]}")}, want: `"result":{"ok":true,"command":"x","environment":"test","dryRun":false,"data":{"a":[1,"\u2028` + "\ufffd" + `"]}}`},
		"nested raw":              {outcome: request.Outcome{Data: struct{ A json.RawMessage }{json.RawMessage("[1,\n\"\u2029\"]")}}, want: `"result":{"ok":true,"command":"x","environment":"test","dryRun":false,"data":{"A":[1,"\u2029"]}}`},
		"no data":                 {want: `"result":{"ok":true,"command":"x","environment":"test","dryRun":false}`},
		"warnings":                {outcome: request.Outcome{Data: object{}, Warnings: []*fault.Error{warning}}, want: `"result":{"ok":true,"command":"x","environment":"test","dryRun":false,"data":{},"warnings":[{"code":"partial_result","message":"two relays did not answer","retryable":true}]}`},
		"failure":                 {outcome: request.Outcome{DryRun: true}, err: fmt.Errorf("parsing: %w", full), want: `"result":{"ok":false,"command":"x","environment":"test","dryRun":false,"errors":[{"code":"invalid_input","message":"limit must be a number","path":"limit","hint":"limit: 20","retryable":true,"details":{"problems":[1]}}]}`},
		"unexpected":              {err: errors.New("dial wss://u:p@relay.example: refused"), want: `"result":{"ok":false,"command":"x","environment":"test","dryRun":false,"errors":[{"code":"unexpected_error","message":"dial wss://[redacted]@relay.example: refused","retryable":false}]}`},
		"cancelled by the action": {err: fault.New(fault.RequestCancelled, "stopped"), want: `"error":{"code":"request_cancelled","message":"stopped","retryable":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, &product{call: func(context.Context, request.Action) (request.Outcome, error) { return test.outcome, test.err }})
			p.send(`{"id":1,"method":"callAction","params":{"action":"x"}}`)
			p.expect(`{"id":1,` + test.want + `}`)
			p.finish()
		})
	}
}

// TestWhatCannotBeEncoded: the answer is a coded failure, whatever the product
// returns.
func TestWhatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]any{
		"list": []int{1}, "text": "x", "null": json.RawMessage(nil), "typed nil": (*object)(nil), "function": object{"f": func() {}},
		"broken raw": json.RawMessage(`{"a":`), "broken nested raw": object{"a": json.RawMessage(`{`)}, "infinite": object{"a": 1 / zero()},
		"panics": panicker{}, "fails": failer{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, &product{
				call:    func(context.Context, request.Action) (request.Outcome, error) { return outcome(data) },
				logout:  func(context.Context, string) (request.Outcome, error) { return outcome(data) },
				visible: func(context.Context, string) (any, error) { return data, nil },
			})
			p.send(`{"id":1,"method":"callAction","params":{"action":"x"}}`, `{"id":2,"method":"logoutSession","params":{"pubkey":"p"}}`, `{"id":3,"method":"visibleActions"}`)
			frames := p.nextFrames(3)
			if e := frames["1"].envelope(t); e.OK || len(e.Errors) != 1 || e.Errors[0].Code != "unexpected_error" {
				t.Errorf("callAction: %+v", e)
			}
			for _, id := range []string{"2", "3"} {
				if f := frames[id]; f.Error == nil || f.Error.Code != "unexpected_error" {
					t.Errorf("%s: %+v", id, f)
				}
			}
			p.finish()
			if len(p.log.events(t, "unexpectedError")) < 3 {
				t.Errorf("the log does not tell: %s", p.log)
			}
		})
	}
}

func zero() float64 { return 0 }

type panicker struct{}

func (panicker) MarshalJSON() ([]byte, error) { panic("secret=canary") }

type failer struct{}

func (failer) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

func TestDetailsThatCannotBeEncodedAreLeftOut(t *testing.T) {
	t.Parallel()
	problem := fault.New(fault.NotFound, "no such listing").WithDetails(object{"f": func() {}})
	p := newPeer(t, &product{
		call:   func(context.Context, request.Action) (request.Outcome, error) { return request.Outcome{}, problem },
		logout: func(context.Context, string) (request.Outcome, error) { return request.Outcome{}, problem },
	})
	p.send(`{"id":1,"method":"callAction","params":{"action":"x"}}`)
	p.expect(`{"id":1,"result":{"ok":false,"command":"x","environment":"test","dryRun":false,"errors":[{"code":"not_found","message":"no such listing","retryable":false}]}}`)
	p.send(`{"id":2,"method":"logoutSession","params":{"pubkey":"p"}}`)
	p.expect(`{"id":2,"error":{"code":"not_found","message":"no such listing","retryable":false}}`)
	p.finish()
	if got := len(p.log.events(t, "unexpectedError")); got != 2 {
		t.Errorf("%d log lines tell that details were left out: %s", got, p.log)
	}
}

// TestLogoutFailuresAreErrorFrames (spec 10 §3.5).
func TestLogoutFailuresAreErrorFrames(t *testing.T) {
	t.Parallel()
	problem := fault.New(fault.PendingSwaps, "one swap is still open").WithHint("Wait for it.").Transient().
		WithDetails(object{"pendingSwapCount": 1})
	p := newPeer(t, &product{logout: func(context.Context, string) (request.Outcome, error) { return request.Outcome{}, problem }})
	p.send(`{"id":1,"method":"logoutSession","params":{"pubkey":"p"}}`)
	p.expect(`{"id":1,"error":{"code":"pending_swaps","message":"one swap is still open","hint":"Wait for it.","retryable":true,"details":{"pendingSwapCount":1}}}`)
	p.finish()
}

// TestCatalogFailuresAreErrorFrames: a daemon that could not start says so on
// describe too (spec 10 §1.3).
func TestCatalogFailuresAreErrorFrames(t *testing.T) {
	t.Parallel()
	problem := fault.New(fault.UnexpectedError, "the state directory is not readable").Transient()
	p := newPeer(t, &product{
		describe: func(context.Context) (json.RawMessage, error) { return nil, problem },
		visible:  func(context.Context, string) (any, error) { return nil, problem },
	})
	for _, method := range []string{"describe", "visibleActions"} {
		p.send(`{"id":1,"method":"` + method + `"}`)
		p.expect(`{"id":1,"error":{"code":"unexpected_error","message":"the state directory is not readable","retryable":true}}`)
	}
	p.finish()
}

func TestDescribeFollowsTheCatalog(t *testing.T) {
	t.Parallel()
	catalogs := []string{`{"version":1}`, `{"version":1}`, `{"version":2,"text":"` + strings.Repeat("long ", 50_000) + `"}`, `{"version":1}`}
	calls := 0
	p := newPeer(t, &product{describe: func(context.Context) (json.RawMessage, error) {
		calls++
		return json.RawMessage(catalogs[calls-1]), nil
	}})
	for _, catalog := range catalogs {
		p.send(`{"id":1,"method":"describe"}`)
		p.expect(`{"id":1,"result":` + catalog + `}`)
	}
	p.finish()
}

func TestContextOfARequest(t *testing.T) {
	t.Parallel()
	type facts struct {
		trace    string
		deadline time.Duration
	}
	seen := make(chan facts, 1)
	p := newPeer(t, &product{
		limit: func(request.Action) time.Duration { return time.Hour },
		call: func(ctx context.Context, _ request.Action) (request.Outcome, error) {
			deadline, _ := ctx.Deadline()
			seen <- facts{trace.ID(ctx), time.Until(deadline)}
			zerolog.Ctx(ctx).Info().Str("event", "mine").Send()
			return outcome(object{})
		},
	})
	p.send(`{"id":1,"traceId":"trace-1","method":"callAction","params":{"action":"x"}}`)
	p.next()
	if got := <-seen; got.trace != "trace-1" || got.deadline < 59*time.Minute || got.deadline > time.Hour {
		t.Errorf("the context says %+v", got)
	}
	p.finish()
	if mine := p.log.events(t, "mine"); len(mine) != 1 || mine[0]["traceId"] != "trace-1" {
		t.Errorf("the logger of the context wrote %v", mine)
	}
}
