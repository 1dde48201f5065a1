package relay

import (
	"strings"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
)

// End is how a relay's part of a request ended.
type End string

const (
	// EndEOSE means that the relay sent all it has.
	EndEOSE End = "eose"
	// EndClosed means that the relay closed the request.
	EndClosed End = "closed"
	// EndUnreachable means that no connection came about.
	EndUnreachable End = "unreachable"
	// EndTimeout means that the relay did not finish in time.
	EndTimeout End = "timeout"
	// EndDropped means that the connection was lost, or the answer was too large.
	EndDropped End = "dropped"
)

// RelayOutcome is one relay's part of an answer.
type RelayOutcome struct {
	// URL is the relay's cleaned URL.
	URL string `json:"relayUrl"`
	End End    `json:"end"`
	// Reason is the relay's own text or what went wrong; empty for EndEOSE.
	Reason string `json:"reason,omitempty"`
	// Events is how many events of the answer came from this relay first.
	Events int `json:"events"`
}

// Answer is what a query brought.
type Answer struct {
	// Events match the filter, are verified and are there once, in order of arrival.
	// Callers with equal queries share them: they are not to be changed.
	Events []*nostr.Event
	// Complete is true when every asked relay sent EOSE. Only then is the absence of
	// an event worth anything. It is false when no relay could be asked.
	Complete bool
	// Relays has one entry per asked relay, in the order they were named.
	Relays []RelayOutcome
}

// IncompleteDetails are the details of an Answer's warning.
type IncompleteDetails struct {
	Relays []RelayOutcome `json:"relays"`
}

// Warning returns nil for a complete answer, else a retryable partial_result that
// names the relays and what kept each from answering in full.
func (a Answer) Warning() *fault.Error {
	if a.Complete {
		return nil
	}
	var problems []string
	for _, outcome := range a.Relays {
		if outcome.End != EndEOSE {
			problems = append(problems, outcome.String())
		}
	}
	if len(problems) == 0 {
		problems = []string{"there was no relay to ask"}
	}
	return fault.New(fault.PartialResult, "The answer may be incomplete: %s. Try again later.", strings.Join(problems, "; ")).
		WithDetails(IncompleteDetails{a.Relays}).Transient()
}

// endTexts follow the relay's URL.
var endTexts = map[End]string{
	EndEOSE:        "answered",
	EndClosed:      "closed the request",
	EndUnreachable: "could not be reached",
	EndTimeout:     "did not answer in full",
	EndDropped:     "broke off",
}

// String describes the outcome in a few words.
func (o RelayOutcome) String() string {
	text := o.URL + " " + endTexts[o.End]
	if o.Reason != "" {
		text += " (" + o.Reason + ")"
	}
	return text
}
