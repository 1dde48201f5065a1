package signerapp

import "slices"

// Behaviour says how the app answers. The zero value approves everything at once.
type Behaviour struct {
	// Methods limits the behaviour to these methods; empty: it holds for all. The
	// answer to a scanned code counts as method "scan".
	Methods []string `json:"methods,omitempty"`
	// Times ends the behaviour after it has met this many requests. 0: it lasts.
	Times int `json:"times,omitempty"`

	// Hold keeps requests until Approve or Deny, as a person does who looks elsewhere.
	// A repeated request is kept once.
	Hold bool `json:"hold,omitempty"`
	// DelayMillis waits before the answer.
	DelayMillis int `json:"delayMillis,omitempty"`
	// Silent never answers.
	Silent bool `json:"silent,omitempty"`
	// IgnoreRepeats drops a request whose id the app has seen before.
	IgnoreRepeats bool `json:"ignoreRepeats,omitempty"`
	// Refuse answers with this error, such as "Not authorized".
	Refuse string `json:"refuse,omitempty"`
	// ApprovalURL is sent as auth_url before the answer.
	ApprovalURL string `json:"approvalUrl,omitempty"`

	// Repeats sends each answer this many times more, as further events.
	Repeats int `json:"repeats,omitempty"`
	// Contradict sends an error with the same id after the answer.
	Contradict bool `json:"contradict,omitempty"`
	// StrangeFirst sends unreadable and unknown answers before the real one.
	StrangeFirst bool `json:"strangeFirst,omitempty"`
	// NIP04 encrypts answers with NIP-04.
	NIP04 bool `json:"nip04,omitempty"`
	// Raw is the JSON of the answer, with $id where the request's id belongs.
	Raw string `json:"raw,omitempty"`
	// Result replaces the result of a granted request.
	Result string `json:"result,omitempty"`
	// Tamper spoils signed events.
	Tamper Tampering `json:"tamper,omitempty"`

	// Acknowledge answers a scanned code with "ack" in place of the secret.
	Acknowledge bool `json:"acknowledge,omitempty"`
	// WrongSecretFirst answers a scanned code with wrong secrets before the right one.
	WrongSecretFirst bool `json:"wrongSecretFirst,omitempty"`
}

// Tampering is a way to spoil a signed event.
type Tampering string

// Ways to spoil a signed event. Those that change a field sign the changed event.
const (
	TamperContent   Tampering = "content"
	TamperCreatedAt Tampering = "created_at"
	TamperTags      Tampering = "tags"
	TamperKind      Tampering = "kind"
	// TamperAuthor signs with another key.
	TamperAuthor Tampering = "author"
	// TamperSignature breaks the signature and leaves the rest.
	TamperSignature Tampering = "signature"
	// TamperID names another id.
	TamperID Tampering = "id"
)

// take returns the behaviour for one request and counts it. The app's lock is held.
func (b *Behaviour) take(method string) Behaviour {
	if len(b.Methods) > 0 && !slices.Contains(b.Methods, method) {
		return Behaviour{}
	}
	taken := *b
	if b.Times == 1 {
		*b = Behaviour{}
	} else if b.Times > 1 {
		b.Times--
	}
	return taken
}
