package relayproxy

// Faults says how the relay misbehaves. The zero value is a relay in good
// health. What concerns a request holds for requests that come in while it is
// set; DelayMillis and HalfOpen act on open connections at once.
type Faults struct {
	// Times ends the faults after they have met this many requests (REQ, EVENT or
	// connection attempts, whichever they concern). 0: they last until Heal.
	Times int `json:"times,omitempty"`

	// NoEOSE never ends the stored events of a REQ.
	NoEOSE bool `json:"noEose,omitempty"`
	// Closed answers a REQ with CLOSED and this text and nothing else.
	Closed string `json:"closed,omitempty"`
	// Notice sends NOTICE with this text before the answer to a REQ.
	Notice string `json:"notice,omitempty"`
	// Garbage sends frames no relay should send before the answer to a REQ.
	Garbage bool `json:"garbage,omitempty"`
	// OversizedBytes sends one well-formed event of about that many bytes before
	// the answer to a REQ.
	OversizedBytes int `json:"oversizedBytes,omitempty"`
	// Foreign sends genuine events that the REQ did not ask for before its answer.
	Foreign bool `json:"foreign,omitempty"`
	// Forged sends copies with a wrong id or a wrong signature before each event.
	Forged bool `json:"forged,omitempty"`
	// Duplicates sends each event this many times more.
	Duplicates int `json:"duplicates,omitempty"`
	// DropOnRequest cuts the connection when a REQ comes in.
	DropOnRequest bool `json:"dropOnRequest,omitempty"`
	// DropAfterEvents cuts the connection after this many events of one REQ.
	DropAfterEvents int `json:"dropAfterEvents,omitempty"`

	// RefuseEvents answers an EVENT with OK false and this text.
	RefuseEvents string `json:"refuseEvents,omitempty"`
	// NoOK takes an EVENT and never answers it.
	NoOK bool `json:"noOk,omitempty"`
	// DropBeforeOK takes an EVENT and cuts the connection instead of answering.
	DropBeforeOK bool `json:"dropBeforeOk,omitempty"`

	// ShortFrames leaves out the text of CLOSED and OK, as some relays do.
	ShortFrames bool `json:"shortFrames,omitempty"`
	// NoChallenge never sends AUTH on connections made from now on.
	NoChallenge bool `json:"noChallenge,omitempty"`
	// RefuseConnections resets new connections before the handshake.
	RefuseConnections bool `json:"refuseConnections,omitempty"`
	// HandshakeStatus answers new connections with this HTTP status.
	HandshakeStatus int `json:"handshakeStatus,omitempty"`
	// HalfOpen answers nothing at all, pings and handshakes included, and keeps
	// connections open, as a peer behind a dead network does. Once healed, what
	// was sent meanwhile gets through.
	HalfOpen bool `json:"halfOpen,omitempty"`
	// DelayMillis holds each frame to a client back for so many milliseconds.
	DelayMillis int `json:"delayMillis,omitempty"`
}

// occasion is what a fault may concern.
type occasion int

const (
	onAccept    occasion = iota // a TCP connection
	onHandshake                 // a WebSocket handshake
	onRequest                   // a REQ
	onEvent                     // an EVENT
)

func (f Faults) concern(what occasion) bool {
	switch what {
	case onAccept:
		return f.RefuseConnections
	case onHandshake:
		return f.NoChallenge || f.HandshakeStatus != 0
	case onRequest:
		return f.NoEOSE || f.Closed != "" || f.Notice != "" || f.Garbage || f.OversizedBytes > 0 ||
			f.Foreign || f.Forged || f.Duplicates > 0 || f.DropOnRequest || f.DropAfterEvents > 0 || f.ShortFrames
	default:
		return f.RefuseEvents != "" || f.NoOK || f.DropBeforeOK || f.ShortFrames
	}
}
