package signer

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/redact"
	"hostr-daemon/internal/relay"
)

// Methods of NIP-46.
const (
	methodConnect      = "connect"
	methodGetPublicKey = "get_public_key"
	methodSignEvent    = "sign_event"
	methodPing         = "ping"
	methodNIP44Encrypt = "nip44_encrypt"
	methodNIP44Decrypt = "nip44_decrypt"
	methodNIP04Encrypt = "nip04_encrypt"
	methodNIP04Decrypt = "nip04_decrypt"
)

// longestWait bounds a request whose caller sets no deadline.
const longestWait = 10 * time.Minute

// Config is what a Remote needs.
type Config struct {
	Connection Connection
	// Client carries the requests. It may be the very client that has this signer,
	// by way of a Holder, as its account: the answers come over a subscription that
	// goes before AUTH.
	Client *relay.Client
	// Account is the pubkey the signer is known to act for; "" to ask it.
	Account string
	Logger  zerolog.Logger
	// OnPending, if not nil, is told of each request once, when it is first sent. It
	// is called from the goroutine that sends, several at a time, and must return at
	// once.
	OnPending func(PendingRequest)
	// Clock is the machine's when nil. Deadlines of callers are their contexts'.
	Clock relay.Clock
	// Random draws request ids; crypto/rand when nil.
	Random io.Reader
}

// Remote asks a NIP-46 remote signer over the relays of its connection. Equal
// requests that run at the same time are one, which ends when its last caller has
// given up.
//
// A request is sent when the relay has taken the subscription for its answer, and
// again, under the same request id, when that subscription stands again after a lost
// connection and when the signer is silent: it may have been offline, and relays
// keep nothing of these kinds. The first answer counts; what comes later or unasked
// is dropped.
type Remote struct {
	connection Connection
	channel    channel
	client     *relay.Client
	log        zerolog.Logger
	onPending  func(PendingRequest)
	clock      relay.Clock
	random     io.Reader
	links      []*link

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	account string
	byID    map[string]*request
	shared  map[string]*request // by method and parameters
}

// NewRemote subscribes to the signer's answers and returns at once. The signer lives
// until Close or until the context ends.
func NewRemote(ctx context.Context, config Config) (*Remote, error) {
	relays, err := config.Connection.check()
	if err != nil {
		return nil, err
	}
	if config.Account != "" && !isPublicKey(config.Account) {
		return nil, fmt.Errorf("the account %q is no public key; it has 64 lower-case hex digits", foreignText(config.Account))
	}
	if config.Client == nil {
		return nil, errors.New("a remote signer needs a relay client")
	}
	channel, err := newChannel(config.Connection.PrivateKey, config.Connection.RemotePubkey)
	if err != nil {
		return nil, err
	}
	r := &Remote{
		connection: config.Connection, channel: channel, client: config.Client,
		log:       config.Logger.With().Str("signerPubkey", config.Connection.RemotePubkey).Logger(),
		onPending: config.OnPending, clock: config.Clock, random: config.Random, account: config.Account,
		byID: map[string]*request{}, shared: map[string]*request{},
	}
	if r.clock == nil {
		r.clock = relay.SystemClock{}
	}
	if r.random == nil {
		r.random = rand.Reader
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	for number, url := range relays {
		r.links = append(r.links, newLink(r, number, url))
	}
	for _, l := range r.links {
		r.tasks.Go(l.run)
	}
	return r, nil
}

// PublicKey implements Signer.
func (r *Remote) PublicKey() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.account
}

// IsRemote implements Signer.
func (r *Remote) IsRemote() bool { return true }

// GetPublicKey asks the signer which account it acts for. An answer other than the
// account known before is a *WrongAccount.
func (r *Remote) GetPublicKey(ctx context.Context) (string, error) {
	answer, err := r.ask(ctx, question{method: methodGetPublicKey})
	if err != nil {
		return "", err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	if !isPublicKey(answer) {
		return "", &WrongAnswer{Method: methodGetPublicKey, Problem: "it is no public key"}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.account != "" && r.account != answer {
		return "", &WrongAccount{Want: r.account, Got: answer}
	}
	r.account = answer
	return answer, nil
}

// Ping returns nil when the signer answers.
func (r *Remote) Ping(ctx context.Context) error {
	_, err := r.ask(ctx, question{method: methodPing})
	return err
}

// Connect introduces the client key to a signer that gave out a bunker:// address,
// with the secret of that address.
func (r *Remote) Connect(ctx context.Context, secret string) error {
	answer, err := r.ask(ctx, question{method: methodConnect, params: []string{r.connection.RemotePubkey, secret}})
	if err == nil && answer != "ack" && answer != secret {
		return &WrongAnswer{Method: methodConnect, Problem: "it is neither ack nor the secret"}
	}
	return err
}

// SignEvent implements Signer. The event that comes back has to be the one that was
// asked for.
func (r *Remote) SignEvent(ctx context.Context, event *nostr.Event) error {
	account := r.PublicKey()
	if account == "" {
		var err error
		if account, err = r.GetPublicKey(ctx); err != nil {
			return err
		}
	}
	if err := checkUnsigned(event, account); err != nil {
		return err
	}
	parameter, err := encodeJSON(newUnsignedEvent(event))
	if err != nil {
		return fmt.Errorf("writing an event of kind %d for the signer: %w", event.Kind, err)
	}
	kind := event.Kind
	answer, err := r.ask(ctx, question{method: methodSignEvent, params: []string{parameter}, kind: &kind})
	if err != nil {
		return err
	}
	signed, err := acceptSigned(answer, event, account)
	if err != nil {
		return err
	}
	event.PubKey, event.ID, event.Sig = signed.PubKey, signed.ID, signed.Sig
	return nil
}

// NIP44Encrypt implements Signer.
func (r *Remote) NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error) {
	if err := checkPlaintext(plaintext); err != nil {
		return "", err
	}
	return r.encrypt(ctx, methodNIP44Encrypt, peer, plaintext, isNIP44)
}

// NIP44Decrypt implements Signer.
func (r *Remote) NIP44Decrypt(ctx context.Context, peer, payload string) (string, error) {
	return r.decrypt(ctx, methodNIP44Decrypt, peer, payload, isNIP44)
}

// NIP04Encrypt implements Signer.
func (r *Remote) NIP04Encrypt(ctx context.Context, peer, plaintext string) (string, error) {
	return r.encrypt(ctx, methodNIP04Encrypt, peer, plaintext, isNIP04)
}

// NIP04Decrypt implements Signer.
func (r *Remote) NIP04Decrypt(ctx context.Context, peer, payload string) (string, error) {
	return r.decrypt(ctx, methodNIP04Decrypt, peer, payload, isNIP04)
}

// Pending returns the requests that were sent and are not answered, oldest first.
func (r *Remote) Pending() []PendingRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pending []PendingRequest
	for _, q := range r.byID {
		if q.announced {
			pending = append(pending, q.PendingRequest)
		}
	}
	slices.SortFunc(pending, func(a, b PendingRequest) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return pending
}

// Close implements Signer.
func (r *Remote) Close() {
	r.shut()
	r.tasks.Wait()
}

// Format implements fmt.Formatter for every verb.
func (r *Remote) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "remote signer %s of account %q %s", r.connection.RemotePubkey, r.PublicKey(), redact.Redacted)
}

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (r *Remote) MarshalText() ([]byte, error) { return fmt.Append(nil, r), nil }

// encrypt asks for a payload and does not pass on anything that is none: it would be
// published.
func (r *Remote) encrypt(ctx context.Context, method, peer, plaintext string, isPayload func(string) bool) (string, error) {
	if err := checkPeer(peer); err != nil {
		return "", err
	}
	payload, err := r.ask(ctx, question{method: method, params: []string{peer, plaintext}})
	if err == nil && !isPayload(payload) {
		return "", &WrongAnswer{Method: method, Problem: "it is no encrypted payload"}
	}
	return payload, err
}

// decrypt does not trouble the signer, and perhaps a person, with what is no payload.
func (r *Remote) decrypt(ctx context.Context, method, peer, payload string, isPayload func(string) bool) (string, error) {
	if err := checkPeer(peer); err != nil {
		return "", err
	}
	if !isPayload(payload) {
		return "", fmt.Errorf("the payload of %d bytes %w", len(payload), ErrUndecryptable)
	}
	return r.ask(ctx, question{method: method, params: []string{peer, payload}})
}

// ask joins or begins a request and waits for its answer.
func (r *Remote) ask(ctx context.Context, asked question) (string, error) {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, longestWait)
		defer cancel()
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s was not asked for: %w", asked.method, context.Cause(ctx))
	}
	q, err := r.join(asked)
	if err != nil {
		return "", err
	}
	defer r.leave(q)
	select {
	case <-q.done:
		return q.result, q.err
	case <-ctx.Done():
		return "", r.givenUp(ctx, q)
	case <-r.ctx.Done():
		return "", ErrClosed
	}
}

// givenUp tells a deadline from a cancellation.
func (r *Remote) givenUp(ctx context.Context, q *request) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("waiting for the signer's answer to %s: %w", q.Method, context.Cause(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	unanswered := &Unanswered{Method: q.Method, ApprovalPage: q.approvalPage}
	for i, d := range q.deliveries {
		unanswered.Delivered = unanswered.Delivered || d.accepted
		if !d.accepted {
			problem := cmp.Or(d.refusal, d.problem, noAnswer)
			unanswered.Relays = append(unanswered.Relays, RelayProblem{r.links[i].url, problem})
		}
	}
	return unanswered
}

// shut ends everything without waiting for it.
func (r *Remote) shut() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
}

// encodeJSON writes JSON as it is signed: without escapes for HTML.
func encodeJSON(value any) (string, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
