package daemon

import (
	"bytes"
	"errors"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/redact"
)

// read handles lines until the input ends. It never waits for work; it only pauses
// while the output has a backlog.
func (d *Daemon) read(input *inputEnd) {
	defer close(input.reached)
	lines := newLineReader(d.in, d.limits.LineBytes)
	var buffer []byte // for the frames the reader answers with
	for {
		line, kept, err := lines.next()
		if d.ended.Load() {
			input.err = errEnding
			return
		}
		switch {
		case errors.Is(err, errLineTooLong):
			buffer = d.refuse(buffer, header{id: nullText}, d.lineTooLong())
		case err != nil:
			input.err = err
			return
		default:
			buffer = d.handle(buffer, line, kept)
		}
		d.out.waitForRoom(d.base.Done())
	}
}

func (d *Daemon) lineTooLong() *fault.Error {
	return fault.New(fault.InvalidRequest, "a request line may have %d bytes at most; this one is longer and was skipped", d.limits.LineBytes)
}

// handle answers a line or hands it on as a call. It returns the buffer for reuse.
func (d *Daemon) handle(buffer, line []byte, kept bool) []byte {
	line, copied := validText(line)
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return buffer
	}
	f, problem := parseFrame(line)
	if problem != nil {
		return d.refuse(buffer, header{id: nullText}, problem)
	}
	name := textOf(f.method.Of(f.line))
	if string(name) == methodCancel {
		return d.cancel(buffer, &f)
	}
	m := methods[string(name)]
	if m == nil {
		return d.unknownMethod(buffer, &f, name)
	}
	f.keep(kept || copied)
	return d.accept(buffer, m, &f)
}

// headerOf returns what the answer to a frame repeats. The trace id may also be a
// parameter.
func headerOf(f *frame, p *parameters) header {
	h := header{id: f.idText(), method: textOf(f.method.Of(f.line)), traceID: trimmedText(f.traceID.Of(f.line))}
	if len(h.traceID) == 0 {
		h.traceID = trimmedText(p[paramTraceID])
	}
	return h
}

func (d *Daemon) unknownMethod(buffer []byte, f *frame, name []byte) []byte {
	p := parseParameters(f.paramsText())
	h := headerOf(f, &p)
	problem := &fault.Error{Code: fault.UnknownMethod, Message: "the request names no method", Hint: methodHint}
	if len(name) > 0 {
		problem.Message = redact.Text(`there is no method "` + string(cut(name)) + `"`)
	}
	return d.refuse(buffer, h, problem)
}

// cancel ends every open call of an id and says whether there was one (spec 10
// §4.2).
func (d *Daemon) cancel(buffer []byte, f *frame) []byte {
	p := parseParameters(f.paramsText())
	h := headerOf(f, &p)
	requestID := trimmedText(p[paramRequestID])
	if len(requestID) == 0 {
		_, problem := p.required(paramRequestID)
		d.journal.cancelError(problem.Message)
		return d.refuse(buffer, h, problem)
	}
	var cancelled []*call
	for _, c := range d.calls.find(requestID) {
		if c.settle() {
			cancelled = append(cancelled, c)
		}
	}
	found := len(cancelled) > 0
	buffer = append(appendHead(buffer[:0], h), `,"result":{"cancelled":`...)
	buffer = appendText(append(appendBool(buffer, found), `,"requestId":`...), requestID)
	buffer = append(buffer, "}}\n"...)
	buffer = d.send(buffer)
	d.journal.cancel(h, requestID, found)
	for _, c := range cancelled {
		d.answerAbandoned(c, errCancelled)
	}
	return buffer
}

// accept registers a call and lets it run or wait, or answers what stands in its
// way.
func (d *Daemon) accept(buffer []byte, m *method, f *frame) []byte {
	p := parseParameters(f.paramsText())
	h := headerOf(f, &p)
	j, problem := m.prepare(&p, stringOf(h.traceID))
	if problem != nil {
		return d.refuse(buffer, h, problem)
	}
	c := &call{header: h, method: m, job: j, key: keyOf(f.id.Of(f.line)), params: f.paramsText(), size: len(f.line), arrived: time.Now()}
	d.open(c)
	return buffer
}

// refuse answers with an error frame and logs it.
func (d *Daemon) refuse(buffer []byte, h header, problem *fault.Error) []byte {
	a := errorAnswer(buffer[:0], h, problem)
	buffer = d.send(a.frame)
	d.journal.failure(h, a.issue)
	return buffer
}

// send queues a frame and returns its buffer when that may be used again.
func (d *Daemon) send(frame []byte) []byte {
	d.out.add(frame)
	if len(frame) > chunkSize {
		return nil
	}
	return frame
}
