package daemon

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/redact"
)

// journal writes the request log of spec 10 §7.1. Everything in it that came from
// outside is of bounded length, and what may be large is redacted here, by keys; the
// rest is redacted by the writer behind the logger.
//
// A request that is refused before it becomes a call has one line, error, with its
// method; every other has request and then response, error or cancelled. The members
// of a line are appended to one buffer and given to zerolog at once, which is faster.
type journal struct {
	logger zerolog.Logger
	// limit is the length in bytes at which params, results and details are cut.
	limit int
}

// maxHeader is the length at which ids, trace ids and method names are cut.
const maxHeader = 128

func (j *journal) request(h header, params []byte, wait time.Duration) {
	line, ok := j.begin(zerolog.InfoLevel, "request", h)
	if !ok {
		return
	}
	line.text("method", cut(h.method))
	if ms := wait.Milliseconds(); ms > 0 {
		line.number("queueMs", ms)
	}
	line.redacted("params", params, j.limit)
	line.send()
}

func (j *journal) response(h header, result []byte, elapsed time.Duration) {
	line, ok := j.begin(zerolog.InfoLevel, "response", h)
	if !ok {
		return
	}
	line.text("method", cut(h.method))
	line.number("elapsedMs", elapsed.Milliseconds())
	line.redacted("result", result, j.limit)
	line.send()
}

// redactedResponse is response with a result that is fit for the log already.
func (j *journal) redactedResponse(h header, result []byte, elapsed time.Duration) {
	line, ok := j.begin(zerolog.InfoLevel, "response", h)
	if !ok {
		return
	}
	line.text("method", cut(h.method))
	line.number("elapsedMs", elapsed.Milliseconds())
	line.raw("result", result)
	line.send()
}

func (j *journal) failure(h header, issue *fault.Error) {
	line, ok := j.begin(zerolog.WarnLevel, "error", h)
	if !ok {
		return
	}
	if len(h.method) > 0 {
		line.text("method", cut(h.method))
	}
	line.string("code", string(issue.Code))
	line.string("message", issue.Message)
	if issue.Path != "" {
		line.string("path", issue.Path)
	}
	line.flag("retryable", issue.Retryable)
	if issue.Details != nil {
		if details, err := encode(issue.Details); err == nil {
			line.redacted("details", details, j.limit)
		}
	}
	line.send()
}

func (j *journal) cancelled(h header, message string) {
	if line, ok := j.begin(zerolog.InfoLevel, "cancelled", h); ok {
		line.string("message", message)
		line.send()
	}
}

// unexpected tells what only a mistake in the program can cause; stack may be nil.
func (j *journal) unexpected(h header, message string, stack []byte) {
	line, ok := j.begin(zerolog.ErrorLevel, "unexpectedError", h)
	if !ok {
		return
	}
	line.string("message", redact.Text(message))
	if len(stack) > 0 {
		line.string("stack", redact.Text(string(stack)))
	}
	line.send()
}

func (j *journal) cancel(h header, requestID []byte, found bool) {
	if line, ok := j.begin(zerolog.InfoLevel, "cancel", h); ok {
		line.text("requestId", cut(requestID))
		line.flag("found", found)
		line.send()
	}
}

func (j *journal) cancelError(message string) {
	j.logger.Warn().Str("event", "cancelError").Str("message", message).Send()
}

// notificationsDropped tells how many notifications a stalled output has cost.
func (j *journal) notificationsDropped(count uint64) {
	j.logger.Warn().Str("event", "notificationsDropped").Uint64("count", count).Send()
}

// logLine is one line on its way to zerolog.
type logLine struct {
	event *zerolog.Event
	// members holds the value of "event" and all members behind it.
	members *[]byte
}

var memberBuffers = sync.Pool{New: func() any { return new([]byte) }}

// begin starts a line, or reports false when the logger does not want it.
func (j *journal) begin(level zerolog.Level, name string, h header) (logLine, bool) {
	event := j.logger.WithLevel(level)
	if !event.Enabled() {
		return logLine{}, false
	}
	line := logLine{event: event, members: memberBuffers.Get().(*[]byte)}
	*line.members = appendString((*line.members)[:0], name)
	if len(h.id) <= maxHeader {
		line.redacted("id", h.id, 0)
	} else {
		line.text("id", cut(textOf(h.id)))
	}
	if len(h.traceID) > 0 {
		line.text("traceId", cut(h.traceID))
	}
	return line, true
}

func (l logLine) key(name string) {
	*l.members = append(append(append(*l.members, `,"`...), name...), `":`...)
}

func (l logLine) raw(name string, json []byte) {
	l.key(name)
	*l.members = append(*l.members, json...)
}

func (l logLine) text(name string, text []byte) {
	l.key(name)
	*l.members = appendText(*l.members, text)
}

func (l logLine) string(name, text string) {
	l.key(name)
	*l.members = appendString(*l.members, text)
}

func (l logLine) number(name string, value int64) {
	l.key(name)
	*l.members = strconv.AppendInt(*l.members, value, 10)
}

func (l logLine) flag(name string, value bool) {
	l.key(name)
	*l.members = appendBool(*l.members, value)
}

func (l logLine) redacted(name string, json []byte, limit int) {
	l.key(name)
	*l.members = redact.AppendJSON(*l.members, json, limit)
}

func (l logLine) send() {
	l.event.RawJSON("event", *l.members).Send()
	if cap(*l.members) <= chunkSize {
		memberBuffers.Put(l.members)
	}
}

// cut shortens what stands at the head of a line: the text form of a JSON value. A
// long text is redacted before it is cut, since half a secret may have no shape any
// more, and so is one that may be JSON, whose keys tell what is secret; any other
// short one is left to the writer behind the logger.
func cut(text []byte) []byte {
	if len(text) <= maxHeader && bytes.IndexByte(text, '"') < 0 && bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	return redact.Head(text, maxHeader)
}
