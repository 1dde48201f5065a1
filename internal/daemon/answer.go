package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/jsontext"
	"hostr-daemon/internal/redact"
	"hostr-daemon/internal/request"
)

// answer is one response frame and what its log line needs.
type answer struct {
	// frame is the whole line, line feed included.
	frame []byte
	// result is where the frame's result lies; empty for an error frame.
	result jsontext.Span
	// logged is the result as the log shows it, where that is known already.
	logged []byte
	// issue is set for an error frame.
	issue *fault.Error
	// unexpected is what nobody had foreseen, for the log only.
	unexpected string
}

// appendHead begins a response frame.
func appendHead(dst []byte, h header) []byte {
	dst = append(append(dst, `{"id":`...), h.id...)
	if len(h.traceID) > 0 {
		dst = appendText(append(dst, `,"traceId":`...), h.traceID)
	}
	return dst
}

// resultAnswer makes a response frame of a result, given as safe JSON text.
func resultAnswer(buffer []byte, h header, result []byte) answer {
	frame := append(appendHead(buffer, h), `,"result":`...)
	start := len(frame)
	frame = append(frame, result...)
	return answer{frame: append(frame, "}\n"...), result: jsontext.Span{Start: start, End: start + len(result)}}
}

// envelopeAnswer makes a response frame of an envelope.
func envelopeAnswer(buffer []byte, h header, e *envelope) (answer, error) {
	frame := append(appendHead(buffer, h), `,"result":`...)
	start := len(frame)
	frame, err := e.append(frame)
	if err != nil {
		return answer{}, err
	}
	return answer{result: jsontext.Span{Start: start, End: len(frame)}, frame: append(frame, "}\n"...)}, nil
}

// errorAnswer makes an error frame. Details that cannot be encoded are left out,
// which the log tells.
func errorAnswer(buffer []byte, h header, issue *fault.Error) answer {
	head := append(appendHead(buffer, h), `,"error":`...)
	a := answer{issue: issue}
	frame, err := appendIssue(head, issue)
	if err != nil {
		a.unexpected = err.Error()
		a.issue = issue.WithDetails(nil)
		frame, _ = appendIssue(head, a.issue) // without details nothing can fail
	}
	a.frame = append(frame, "}\n"...)
	return a
}

// answerSuccess makes the answer of an outcome.
func (d *Daemon) answerSuccess(c *call, buffer []byte, outcome request.Outcome) (answer, error) {
	if c.method.catalog {
		return d.answerCatalog(c, buffer, outcome.Data)
	}
	e := envelope{OK: true, Command: c.job.command, Environment: d.environment, DryRun: outcome.DryRun, TraceID: c.traceID}
	for _, warning := range outcome.Warnings {
		e.Warnings = append(e.Warnings, withoutSecrets(warning))
	}
	if outcome.Data != nil {
		var err error
		if e.Data, err = encodeObject(outcome.Data); err != nil {
			return answer{}, err
		}
	}
	return envelopeAnswer(buffer, c.header, &e)
}

// answerCatalog makes the answer of a catalog method.
func (d *Daemon) answerCatalog(c *call, buffer []byte, data any) (answer, error) {
	if raw, ok := data.(json.RawMessage); ok {
		text, err := d.catalog.check(raw, d.limits.CatalogBytes)
		if err != nil {
			return answer{}, err
		}
		a := resultAnswer(buffer, c.header, text.safe)
		a.logged = text.logged
		return a, nil
	}
	text, err := encodeObject(data)
	if err != nil {
		return answer{}, err
	}
	a := resultAnswer(buffer, c.header, text)
	a.logged = redact.AppendJSON(nil, text, d.limits.CatalogBytes)
	return a, nil
}

// answerFailure makes the answer of an error the product has returned.
func (d *Daemon) answerFailure(c *call, buffer []byte, err error) answer {
	var coded *fault.Error
	timedOut := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errTimeLimit)
	if timedOut && errors.Is(context.Cause(c.ctx), errTimeLimit) && !errors.As(err, &coded) {
		a := d.answerProblem(c, buffer, timeLimitProblem(c))
		a.unexpected = errTimeLimit.Error()
		return a
	}
	problem := fault.From(err)
	if problem.Code == fault.RequestCancelled {
		return errorAnswer(buffer, c.header, withoutSecrets(problem))
	}
	a := d.answerProblem(c, buffer, problem)
	if problem.Code == fault.UnexpectedError && a.unexpected == "" {
		a.unexpected = err.Error()
	}
	return a
}

// answerProblem makes the answer of a failed call in the form of its method.
func (d *Daemon) answerProblem(c *call, buffer []byte, problem *fault.Error) answer {
	problem = withoutSecrets(problem)
	if !c.method.envelopesFailures() {
		return errorAnswer(buffer, c.header, problem)
	}
	e := envelope{Command: c.job.command, Environment: d.environment, TraceID: c.traceID, Errors: []*fault.Error{problem}}
	a, err := envelopeAnswer(buffer, c.header, &e)
	if err != nil {
		e.Errors[0] = problem.WithDetails(nil)
		a, _ = envelopeAnswer(buffer, c.header, &e) // without details nothing can fail
		a.unexpected = err.Error()
	}
	return a
}

// answerCrash makes the answer of a call whose work has panicked. What it panicked
// with may hold anything, so only the log gets it, redacted.
func (d *Daemon) answerCrash(c *call, buffer []byte, recovered any) answer {
	message := "the work ended without a result"
	if recovered != nil {
		message = fmt.Sprintf("panic: %v", recovered)
	}
	d.journal.unexpected(c.header, message, debug.Stack())
	return d.answerProblem(c, buffer, fault.New(fault.UnexpectedError, "%s failed by a mistake in the daemon", c.name()).
		WithHint("What it was doing may be done in part; look before you repeat it. The daemon's log has the particulars."))
}

func cancelledProblem(cause error) *fault.Error {
	if errors.Is(cause, errCancelled) {
		return fault.New(fault.RequestCancelled, "the request was cancelled")
	}
	return fault.New(fault.RequestCancelled, "the request was cancelled because the daemon is shutting down")
}

func timeLimitProblem(c *call) *fault.Error {
	return fault.New(fault.UnexpectedError, "%s timed out: it was not done within %s", c.name(), c.limit.Round(time.Second)).
		WithHint("It may still take effect; look before you repeat it.").Transient()
}
