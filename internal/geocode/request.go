package geocode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hostr-daemon/internal/trace"
)

const (
	// attemptTimeout bounds one attempt, from the dial to the last byte.
	attemptTimeout = 30 * time.Second
	// maxAnswerBytes bounds one answer; the outline of a large country takes a few
	// megabytes.
	maxAnswerBytes = 32 << 20
	// maxTraceLength is the longest trace id that is passed on.
	maxTraceLength = 256
)

// retryWaits are the waits after a failed attempt; the attempt after the last wait
// is the last one (spec 42 §1.1).
func retryWaits() []time.Duration { return []time.Duration{250 * time.Millisecond, time.Second} }

// parameter is one query parameter; their order is part of the request.
type parameter struct{ name, value string }

// answer is what the geocoder sent back.
type answer struct {
	status int
	body   []byte
}

// get sends one request, again where that may help, and returns the body of a
// successful answer.
func (c *Client) get(ctx context.Context, parameters []parameter) ([]byte, error) {
	target := c.target(parameters)
	waits := retryWaits()
	for attempt := 1; ; attempt++ {
		if err := c.awaitTurn(ctx); err != nil {
			return nil, err
		}
		received, err := c.attempt(ctx, target, attempt)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if attempt > len(waits) || !worthRetrying(received, err) {
			return c.conclude(received, err, attempt)
		}
		if err := c.clock.Sleep(ctx, waits[attempt-1]); err != nil {
			return nil, err
		}
	}
}

// awaitTurn waits until the rate allows another request.
func (c *Client) awaitTurn(ctx context.Context) error {
	now := c.clock.Now()
	turn := c.limiter.ReserveN(now, 1)
	delay := turn.DelayFrom(now)
	if delay == 0 {
		return ctx.Err()
	}
	if deadline, ok := ctx.Deadline(); ok && delay > time.Until(deadline) {
		turn.CancelAt(now)
		return transientError{errors.New("too many look-ups are waiting for the geocoder")}
	}
	if err := c.clock.Sleep(ctx, delay); err != nil {
		turn.CancelAt(c.clock.Now())
		return err
	}
	return nil
}

func (c *Client) attempt(ctx context.Context, target string, number int) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.attempt)
	defer cancel()
	started := c.clock.Now()
	received, err := c.send(ctx, target)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", c.limits.attempt)
	}
	c.log.Debug().Str("host", c.base.Host).Int("attempt", number).Int("status", received.status).
		Dur("elapsed", c.clock.Now().Sub(started)).Err(err).Msg("geocoder request")
	return received, err
}

func (c *Client) send(ctx context.Context, target string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return answer{}, withoutURL(err)
	}
	request.Header.Set("User-Agent", c.userAgent)
	if id := trace.ID(ctx); fitsHeader(id) {
		request.Header.Set("X-Trace-Id", id)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, withoutURL(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, c.limits.answer+1))
	if err != nil {
		return answer{}, fmt.Errorf("the answer broke off: %w", err)
	}
	if int64(len(body)) > c.limits.answer {
		return answer{}, tooLargeError{c.limits.answer}
	}
	return answer{status: response.StatusCode, body: body}, nil
}

// tooLargeError is an answer that was not read to its end; the next one would be
// no smaller.
type tooLargeError struct{ most int64 }

func (e tooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d bytes", e.most)
}

func worthRetrying(received answer, err error) bool {
	if err != nil {
		var tooLarge tooLargeError
		return !errors.As(err, &tooLarge)
	}
	switch received.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return received.status >= http.StatusInternalServerError
	}
}

// conclude turns the last attempt into the request's outcome.
func (c *Client) conclude(received answer, err error, attempts int) ([]byte, error) {
	if err == nil && received.status >= 200 && received.status < 300 {
		return received.body, nil
	}
	var failure error
	if err != nil {
		failure = fmt.Errorf("%s could not be asked: %w", c.base.Host, err)
	} else {
		failure = fmt.Errorf("%s answered %s", c.base.Host, statusText(received.status))
	}
	if attempts > 1 {
		failure = fmt.Errorf("%w (tried %d times)", failure, attempts)
	}
	if worthRetrying(received, err) {
		return nil, transientError{failure}
	}
	return nil, failure
}

func (c *Client) target(parameters []parameter) string {
	var query strings.Builder
	query.WriteString(c.base.RawQuery)
	for _, parameter := range parameters {
		if query.Len() > 0 {
			query.WriteByte('&')
		}
		query.WriteString(url.QueryEscape(parameter.name) + "=" + url.QueryEscape(parameter.value))
	}
	target := *c.base
	target.RawQuery = query.String()
	return target.String()
}

// withoutURL drops the URL that net/http puts in front of its errors: it repeats
// the query, and may hold a key.
func withoutURL(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

// fitsHeader tells whether a trace id can be sent; net/http refuses the whole
// request for one that cannot.
func fitsHeader(id string) bool {
	printable := func(r rune) bool { return r >= ' ' && r <= '~' }
	return id != "" && len(id) <= maxTraceLength &&
		!strings.ContainsFunc(id, func(r rune) bool { return !printable(r) })
}
