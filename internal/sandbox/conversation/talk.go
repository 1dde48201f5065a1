package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// answerTimeout is how long one answer may take. It lies above the daemon's own
// limit for a relay query (10 s).
const answerTimeout = 20 * time.Second

// shownFrame is how much of a frame is shown unless Options.Raw is set.
const shownFrame = 420

// talk is a conversation under way: it sends, shows, checks and counts.
type talk struct {
	child *Child
	paper *Paper
	raw   bool
	quiet bool // frames are not shown, unless raw
	next  int
	right int
	wrong []string // what was wrong, with the step it belongs to
	step  string
	sent  map[string]time.Time // by id as JSON text
	fatal error                // the daemon is gone or silent; nothing more can be asked

	hiddenRequest, hiddenAnswer string // the last ones that were not shown
}

// call sends one request with an id of its own and waits for the answer.
func (t *talk) call(ctx context.Context, method string, params any) (Frame, bool) {
	request, ok := t.send(method, params)
	if !ok {
		return Frame{}, false
	}
	return t.await(ctx, request)
}

// send writes one request and shows it.
func (t *talk) send(method string, params any) (Request, bool) {
	t.next++
	return t.sendAs(json.RawMessage(strconv.Quote(strconv.Itoa(t.next))), method, params)
}

func (t *talk) sendAs(id json.RawMessage, method string, params any) (Request, bool) {
	request := Request{ID: id, Method: method, TraceID: fmt.Sprintf("sandbox-try-%04d", t.next), Params: params}
	text, err := json.Marshal(request)
	if err == nil {
		t.showRequest(string(text))
		t.sent[string(id)] = time.Now()
		err = t.child.Send(request)
	}
	if err != nil {
		t.stop(err)
		return request, false
	}
	return request, true
}

// await waits for the answer to a request, shows it, and checks what holds for
// every answer.
func (t *talk) await(ctx context.Context, request Request) (Frame, bool) {
	waiting, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	frame, err := t.child.Await(waiting, string(request.ID))
	if err != nil {
		t.stop(err)
		return frame, false
	}
	t.showAnswer(string(frame.text), spell(t.took(request, frame)))
	if frame.TraceID != request.TraceID {
		t.bad("the answer carries the trace id %q instead of %q", frame.TraceID, request.TraceID)
	}
	if (frame.Error == nil) == (frame.Result == nil) {
		t.bad("an answer has a result or an error, and never both")
	}
	return frame, true
}

// action calls an action and returns its envelope.
func (t *talk) action(ctx context.Context, id string, input any) (Envelope, bool) {
	request, ok := t.send("callAction", ActionParams{Action: id, Input: input})
	if !ok {
		return Envelope{}, false
	}
	return t.envelope(ctx, request, id)
}

// envelope waits for an action's answer that is no preview.
func (t *talk) envelope(ctx context.Context, request Request, action string) (Envelope, bool) {
	return t.answered(ctx, request, action, false)
}

// answered waits for an action's answer and checks what holds for every envelope; with
// dryRun set a success must be a preview.
func (t *talk) answered(ctx context.Context, request Request, action string, dryRun bool) (Envelope, bool) {
	frame, ok := t.await(ctx, request)
	if !ok {
		return Envelope{}, false
	}
	var envelope Envelope
	if !t.read(frame, &envelope) {
		return envelope, false
	}
	dryRun = dryRun && envelope.OK // a refusal previews nothing
	if envelope.Command != action || envelope.Environment != Environment || envelope.DryRun == nil || *envelope.DryRun != dryRun {
		t.bad("the envelope must name the action %s, the environment %s and dryRun %t", action, Environment, dryRun)
	}
	if envelope.OK == (len(envelope.Errors) > 0) {
		t.bad("an envelope has errors exactly when it is not ok")
	}
	return envelope, true
}

// succeed calls an action that must succeed and reads its data.
func (t *talk) succeed(ctx context.Context, id string, input, data any) bool {
	envelope, ok := t.action(ctx, id, input)
	if !ok {
		return false
	}
	return t.data(envelope, data)
}

func (t *talk) data(envelope Envelope, data any) bool {
	if !envelope.OK {
		t.bad("the action failed: %s", issues(envelope.Errors))
		return false
	}
	if len(envelope.Warnings) > 0 {
		t.bad("the answer is said to be incomplete: %s", issues(envelope.Warnings))
	}
	if err := json.Unmarshal(envelope.Data, data); err != nil {
		t.bad("the data is not what the action promises: %v", err)
		return false
	}
	return true
}

// read decodes the result of a frame that must not be an error.
func (t *talk) read(frame Frame, into any) bool {
	if frame.Error != nil {
		t.bad("the answer is an error frame: %s", issues([]Issue{*frame.Error}))
		return false
	}
	if err := json.Unmarshal(frame.Result, into); err != nil {
		t.bad("the result is not what the method promises: %v", err)
		return false
	}
	return true
}

// refused checks that an action was refused with this code, at this path unless
// path is "" (where the specification names none).
func (t *talk) refused(envelope Envelope, code, path string) {
	if len(envelope.Errors) != 1 {
		t.bad("expected one error with code %s%s, got %s", code, atPath(path), issues(envelope.Errors))
		return
	}
	refusal := envelope.Errors[0]
	if refusal.Code != code || (path != "" && refusal.Path != path) {
		t.bad("expected code %s%s, got %s", code, atPath(path), issues(envelope.Errors))
		return
	}
	if refusal.Message == "" {
		t.bad("the error %s has no message", code)
		return
	}
	t.good("refused with %s%s", code, atPath(refusal.Path))
}

func (t *talk) good(format string, args ...any) {
	t.right++
	t.paper.Right(fmt.Sprintf(format, args...))
}

func (t *talk) bad(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.wrong = append(t.wrong, t.step+": "+text)
	t.paper.Wrong(text)
}

// check says good when ok, else bad with what was found.
func (t *talk) check(ok bool, claim, found string) {
	if ok {
		t.good("%s", claim)
	} else {
		t.bad("not so: %s (%s)", claim, found)
	}
}

func (t *talk) stop(err error) {
	t.fatal = err
	t.bad("%v", err)
}

func (t *talk) showRequest(text string) {
	if t.quiet && !t.raw {
		t.hiddenRequest = text
		return
	}
	t.paper.Request(t.shown(text))
}

// showAnswer shows an answer with notes on it and, if it is cut, its size.
func (t *talk) showAnswer(text string, notes ...string) {
	shown := t.shown(text)
	if shown != text {
		notes = append([]string{size(len(text))}, notes...)
	}
	if len(notes) > 0 {
		shown += " (" + strings.Join(notes, ", ") + ")"
	}
	if t.quiet && !t.raw {
		t.hiddenAnswer = shown
		return
	}
	t.paper.Answer(shown)
}

// reveal shows the last request that was not shown, and its answer.
func (t *talk) reveal() {
	if t.raw {
		return
	}
	t.paper.Request(t.shown(t.hiddenRequest))
	t.paper.Answer(t.hiddenAnswer)
}

func (t *talk) shown(text string) string {
	if t.raw {
		return text
	}
	return shorten(text, shownFrame)
}

// took is how long an answer took to come.
func (t *talk) took(request Request, frame Frame) time.Duration {
	return frame.came.Sub(t.sent[string(request.ID)])
}

// size writes a number of bytes as a person needs it.
func size(bytes int) string {
	if bytes < 10_000 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d kB", bytes/1000)
}

// spell writes a duration as a person needs it.
func spell(took time.Duration) string {
	if took < time.Millisecond {
		return "under 1ms"
	}
	return took.Round(time.Millisecond).String()
}

func atPath(path string) string {
	if path == "" {
		return ""
	}
	return " at " + path
}

func issues(all []Issue) string {
	if len(all) == 0 {
		return "no error"
	}
	texts := make([]string, len(all))
	for i, issue := range all {
		texts[i] = fmt.Sprintf("%s%s: %s", issue.Code, atPath(issue.Path), issue.Message)
	}
	return strings.Join(texts, "; ")
}
