package input

import "hostr-daemon/internal/fault"

// Reason says in one word what is wrong with a value (spec 30 §11).
type Reason string

// The reasons.
const (
	ReasonMissing Reason = "missing"
	ReasonType    Reason = "type"
	ReasonRange   Reason = "range"
	ReasonFormat  Reason = "format"
	ReasonEnum    Reason = "enum"
)

// Problem is one thing wrong with an input.
type Problem struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	// Path names the property, nested as prices[0].amount.value.
	Path string `json:"path,omitempty"`
	// Hint shows an accepted form.
	Hint   string `json:"hint,omitempty"`
	Reason Reason `json:"reason"`
	// npub is the value that was no pubkey, for invalid_npub only.
	npub string
}

// Details are the details of an input error.
type Details struct {
	Reason Reason `json:"reason"`
	// NPub is the value as given, of an invalid_npub only (spec 20 §10.4).
	NPub string `json:"npub,omitempty"`
	// Problems are all problems in schema order, when there is more than one.
	Problems []Problem `json:"problems,omitempty"`
}

// maxProblems bounds the answer to an input that is wrong in every item of a
// long list.
const maxProblems = 50

type problems struct {
	found []Problem
	// final tells that nothing behind the last problem is worth telling.
	final bool
}

func (p *problems) add(problem Problem) {
	if len(p.found) < maxProblems && !p.final {
		p.found = append(p.found, problem)
	}
}

func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	first := p.found[0]
	details := Details{Reason: first.Reason, NPub: first.npub}
	if len(p.found) > 1 {
		details.Problems = p.found
	}
	return first.fault().WithDetails(details)
}

func (p Problem) fault() *fault.Error {
	return fault.New(p.Code, "%s", p.Message).At(p.Path).WithHint(p.Hint)
}
