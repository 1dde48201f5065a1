package signer

import (
	"fmt"

	"github.com/nbd-wtf/go-nostr"
)

// receive takes an event of the signer.
func (r *Remote) receive(event *nostr.Event) {
	defer func() { // The second line behind the guards of the payload.
		if problem := recover(); problem != nil {
			r.ignore(event, fmt.Sprintf("panic: %T", problem))
		}
	}()
	if event.PubKey != r.connection.RemotePubkey {
		return
	}
	text, err := r.channel.open(event.Content)
	if err != nil {
		r.ignore(event, err.Error())
		return
	}
	answer, err := parseResponse(text)
	if err != nil {
		r.ignore(event, err.Error())
		return
	}
	r.answer(event, answer)
}

// answer gives the response to the request that waits for it: the first one counts.
func (r *Remote) answer(event *nostr.Event, answer response) {
	r.mu.Lock()
	q := r.byID[answer.ID]
	waits := q != nil && answer.waits()
	first := waits && !q.approvalPage
	if waits {
		q.approvalPage = true
	}
	r.mu.Unlock()
	switch {
	case q == nil:
		r.ignore(event, "no request waits for it")
	case first:
		r.log.Info().Str("event", "signer.approval_page").Str("requestId", q.ID).Str("method", q.Method).Send()
	case !waits:
		result, err := answer.outcome(q.Method)
		r.finish(q, result, err)
	}
}

func (r *Remote) ignore(event *nostr.Event, reason string) {
	r.log.Debug().Str("event", "signer.answer.ignored").Str("eventId", event.ID).Str("reason", reason).Send()
}
