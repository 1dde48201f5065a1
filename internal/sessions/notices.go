package sessions

import (
	"fmt"
	"sync"
	"time"

	"hostr-daemon/internal/signer"
)

// signerPending is the method of spec 10 §5.1.
const signerPending = "hostr.signer.pending"

// notices tells the callers of an account that its remote signer was asked for
// something, which a person may have to approve (spec 10 §5.1).
type notices struct {
	notify func(method string, params any)

	mu sync.Mutex
	// tokens holds the operations under way, by account.
	tokens map[string]map[*operation]struct{}
}

// operation is one call under way that wants to be told.
type operation struct{ token, traceID string }

func newNotices(notify func(method string, params any)) *notices {
	return &notices{notify: notify, tokens: make(map[string]map[*operation]struct{})}
}

// register adds an operation of an account until the returned function is called.
func (n *notices) register(pubkey, token, traceID string) (unregister func()) {
	added := &operation{token: token, traceID: traceID}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tokens[pubkey] == nil {
		n.tokens[pubkey] = make(map[*operation]struct{})
	}
	n.tokens[pubkey][added] = struct{}{}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.tokens[pubkey], added)
		if len(n.tokens[pubkey]) == 0 {
			delete(n.tokens, pubkey)
		}
	}
}

// forget drops all operations of an account that has signed out.
func (n *notices) forget(pubkey string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.tokens, pubkey)
}

// signerPendingParams are the params of hostr.signer.pending.
type signerPendingParams struct {
	OperationToken string `json:"operationToken"`
	TraceID        string `json:"traceId,omitempty"`
	TokenPubkey    string `json:"tokenPubkey"`
	ActivePubkey   string `json:"activePubkey"`
	RequestID      string `json:"requestId"`
	SignerPubkey   string `json:"signerPubkey"`
	SignerMethod   string `json:"signerMethod"`
	EventKind      *int   `json:"eventKind"`
	EventLabel     string `json:"eventLabel"`
	CreatedAt      string `json:"createdAt"`
	Message        string `json:"message"`
}

// pending sends one notification per operation of the account.
func (n *notices) pending(sessionKey string, account *Account, request signer.PendingRequest) {
	if request.Background() || n.notify == nil {
		return
	}
	label := eventLabel(request.EventKind)
	for _, told := range n.operations(account.pubkey) {
		n.notify(signerPending, signerPendingParams{
			OperationToken: told.token,
			TraceID:        told.traceID,
			TokenPubkey:    sessionKey,
			ActivePubkey:   account.pubkey,
			RequestID:      request.ID,
			SignerPubkey:   account.pubkey,
			SignerMethod:   request.Method,
			EventKind:      request.EventKind,
			EventLabel:     label,
			CreatedAt:      request.CreatedAt.UTC().Format(time.RFC3339Nano),
			Message:        fmt.Sprintf("Waiting for your Nostr signer to approve: %s. Open the signer app to confirm.", label),
		})
	}
}

func (n *notices) operations(pubkey string) []operation {
	n.mu.Lock()
	defer n.mu.Unlock()
	var told []operation
	for registered := range n.tokens[pubkey] {
		told = append(told, *registered)
	}
	return told
}

// labels name what is signed, by kind (spec 10 §5.1).
var labels = map[int]string{
	0: "profile", 4: "message", 7: "reaction", 8: "badge award", 13: "message seal", 14: "message",
	1059: "message wrapper", 1326: "order transition", 1327: "message", 1328: "payment authorization",
	1329: "trade-key authorization", 9734: "zap request", 9735: "zap receipt", 10008: "profile badges",
	10050: "direct message relay list", 17388: "escrow payment methods", 17389: "account seed backup",
	24242: "picture upload", 30009: "badge definition", 30302: "escrow selection", 30303: "escrow service",
	30402: "listing", 31555: "review", 32122: "order update",
}

func eventLabel(kind *int) string {
	if kind == nil {
		return "signer request"
	}
	if label, ok := labels[*kind]; ok {
		return label
	}
	return fmt.Sprintf("event of kind %d", *kind)
}
