package sessions

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nbd-wtf/go-nostr/nip42"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/signer"
)

const (
	// askTimeout bounds the question who a new signer signs for (spec 20 §3.3).
	askTimeout = 60 * time.Second
	// keptFor is how long a sign-in that nobody waited for can be collected (spec 20 §5.3).
	keptFor = 10 * time.Minute
	// listenPatience is how long the URI is held back for the listener to stand.
	listenPatience = 2 * time.Second
	// mostPending bounds the sign-ins under way of each kind.
	mostPending = 256
	// listenLimit ends a listener that events of strangers keep awake.
	listenLimit = time.Hour

	appImage = "https://hostr.network/assets/assets/images/logo/generated/logo_base_1024.png"
)

// ErrReplaced is what those get who wait for a sign-in that another one replaced.
var ErrReplaced = errors.New("the sign-in was replaced by a new one")

// invitation is a sign-in by Nostr Connect under way: what was shown to the person,
// and the one listener that all waiters share. It stays until a waiter has had its
// success, it is replaced, or its account signs out.
type invitation struct {
	registry *Registry
	shown    signer.Invitation
	madeAt   time.Time
	stop     context.CancelCauseFunc
	lifetime context.Context

	mu sync.Mutex
	// listening is the run under way, or the last one.
	listening *listening
	// approved is the signer that has answered, kept so that signing in to it can be
	// tried again.
	approved *signer.Connection
}

// listening is one run of an invitation's listener.
type listening struct {
	// ready is closed when the subscription stands, done at the end.
	ready    chan struct{}
	done     chan struct{}
	signedIn SignedIn
	err      error
	endedAt  time.Time
}

// Connect returns the pending sign-in of a session key, making one where there is
// none, and its URI. A success that nobody collected comes back at once instead.
func (r *Registry) Connect(key string, regenerate bool) (*PendingSignIn, error) {
	return r.invite(r.connects, key, regenerate)
}

// StartLogin is Connect for an OAuth request id (spec 20 §5.4).
func (r *Registry) StartLogin(requestID string, regenerate bool) (*PendingSignIn, error) {
	return r.invite(r.logins, requestID, regenerate)
}

// Login returns the pending sign-in of an OAuth request id; false when there is none.
func (r *Registry) Login(requestID string) (*PendingSignIn, bool) {
	stale := r.stale(r.logins, requestID)
	r.mu.Lock()
	defer r.mu.Unlock()
	pending, ok := r.logins[requestID]
	if !ok || pending == stale {
		return nil, false
	}
	return &PendingSignIn{registry: r, table: r.logins, key: requestID, invitation: pending}, true
}

// ForgetLogin drops the pending sign-in of an OAuth request id.
func (r *Registry) ForgetLogin(requestID string) { r.forget(r.logins, requestID, nil) }

// PendingSignIn is a sign-in that waits for a person to approve it.
type PendingSignIn struct {
	registry   *Registry
	table      map[string]*invitation
	key        string
	invitation *invitation
}

// URI is the nostrconnect:// address to show; it is a secret until it is used.
func (p *PendingSignIn) URI() string { return p.invitation.shown.URI() }

// Collect returns a success that has not reached anybody yet, using it up.
func (p *PendingSignIn) Collect() (SignedIn, bool) {
	run := p.invitation.current()
	if run == nil {
		return SignedIn{}, false
	}
	select {
	case <-run.done:
	default:
		return SignedIn{}, false
	}
	if run.err != nil || p.registry.config.Now().Sub(run.endedAt) > keptFor {
		return SignedIn{}, false
	}
	p.registry.forget(p.table, p.key, p.invitation)
	return run.signedIn, true
}

// Listen makes sure that one listener runs for the sign-in, and returns when the
// relay has taken its subscription: an answer that comes before is lost, so the URI
// is shown after. One that failed while nobody waited is started afresh, as nobody
// would hear whoever scans the code now. A relay that does not answer is not waited
// for longer than two seconds; the listener goes on trying.
func (p *PendingSignIn) Listen(ctx context.Context) {
	if failed := p.invitation.current(); failed != nil && failed.failed() {
		p.invitation.forgetRun(failed)
	}
	run := p.invitation.listen()
	ctx, cancel := context.WithTimeout(ctx, listenPatience)
	defer cancel()
	select {
	case <-run.ready:
	case <-run.done:
	case <-ctx.Done():
	}
}

// Wait waits until the signer has answered and the account is signed in. Giving up
// ends nothing: the listener runs on, and the next Wait joins it.
func (p *PendingSignIn) Wait(ctx context.Context) (SignedIn, error) {
	run := p.invitation.listen()
	select {
	case <-run.done:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return SignedIn{}, context.Cause(ctx) // also with a result, which is for the next one
	}
	if run.err != nil {
		p.invitation.forgetRun(run)
		return SignedIn{}, run.err
	}
	p.registry.forget(p.table, p.key, p.invitation)
	if !p.registry.acts(run.signedIn.Pubkey) {
		return SignedIn{}, fault.New(fault.SessionConnectFailed, "The account signed out again before its sign-in was collected: start a new one.").Transient()
	}
	return run.signedIn, nil
}

func (r *Registry) invite(table map[string]*invitation, key string, regenerate bool) (*PendingSignIn, error) {
	facts := r.config.Environment
	fresh, err := signer.NewInvitation([]string{facts.HostrRelay}, signer.App{Name: facts.AppName, URL: facts.AppURL, Image: appImage}, r.config.Random)
	if err != nil {
		return nil, err
	}
	stale := r.stale(table, key)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lifetime.Err() != nil {
		return nil, ErrClosed
	}
	pending := table[key]
	if pending != nil && (regenerate || pending == stale) {
		pending.stop(ErrReplaced)
		pending = nil
	}
	r.sweep(table)
	if pending == nil {
		lifetime, stop := context.WithCancelCause(r.lifetime)
		pending = &invitation{registry: r, shown: fresh, madeAt: r.config.Now(), lifetime: lifetime, stop: stop}
		table[key] = pending
	}
	return &PendingSignIn{registry: r, table: table, key: key, invitation: pending}, nil
}

// sweep drops sign-ins that ended long ago and that nobody came back for, since the
// bridge makes a new key for each of its own sessions, and the oldest ones beyond
// mostPending, since each holds a subscription. The caller holds r.mu.
func (r *Registry) sweep(table map[string]*invitation) {
	for key, pending := range table {
		if pending.over(r.config.Now()) {
			pending.stop(ErrReplaced)
			delete(table, key)
		}
	}
	for len(table) >= mostPending {
		oldest := ""
		for key, pending := range table {
			if oldest == "" || pending.madeAt.Before(table[oldest].madeAt) {
				oldest = key
			}
		}
		table[oldest].stop(ErrReplaced)
		delete(table, oldest)
	}
}

// stale returns the pending sign-in of a key if it has succeeded and is worth nothing
// any more: kept for too long, or its account has signed out since.
func (r *Registry) stale(table map[string]*invitation, key string) *invitation {
	r.mu.Lock()
	pending := table[key]
	r.mu.Unlock()
	if pending == nil {
		return nil
	}
	run := pending.current()
	if run == nil {
		return nil
	}
	select {
	case <-run.done:
	default:
		return nil
	}
	if run.err != nil || r.config.Now().Sub(run.endedAt) <= keptFor && r.acts(run.signedIn.Pubkey) {
		return nil
	}
	return pending
}

// acts tells whether an account is signed in to its session. Not under the lock: a
// session locks itself before the registry elsewhere.
func (r *Registry) acts(pubkey string) bool {
	r.mu.Lock()
	session := r.keyed[pubkey]
	r.mu.Unlock()
	return session != nil && session.Account() != nil
}

// forget drops a pending sign-in and ends its listener; with only set, only if it is
// still that one.
func (r *Registry) forget(table map[string]*invitation, key string, only *invitation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pending := table[key]
	if pending == nil || only != nil && pending != only {
		return
	}
	pending.stop(ErrReplaced)
	delete(table, key)
}

func (i *invitation) current() *listening {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.listening
}

// over tells of any end that nobody has asked about for too long.
func (i *invitation) over(now time.Time) bool {
	run, ended := i.ended(now)
	return ended || run == nil && now.Sub(i.madeAt) > listenLimit
}

// ended returns the last run and whether it ended longer ago than results are kept.
func (i *invitation) ended(now time.Time) (*listening, bool) {
	run := i.current()
	if run == nil {
		return nil, false
	}
	select {
	case <-run.done:
		return run, now.Sub(run.endedAt) > keptFor
	default:
		return run, false
	}
}

// failed tells of a run that has ended with an error.
func (l *listening) failed() bool {
	select {
	case <-l.done:
		return l.err != nil
	default:
		return false
	}
}

// forgetRun drops a failed run, so that the next one listens afresh, on the same QR
// code.
func (i *invitation) forgetRun(run *listening) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.listening == run {
		i.listening = nil
	}
}

// listen returns the run under way, starting one if there is none.
func (i *invitation) listen() *listening {
	run, first := i.join()
	// Not under the lock: the registry locks itself before an invitation elsewhere.
	if first && !i.registry.goBackground("waiting for a sign-in", func(context.Context) { i.run(run) }) {
		close(run.done)
	}
	return run
}

func (i *invitation) join() (run *listening, first bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.listening != nil {
		return i.listening, false
	}
	i.listening = &listening{ready: make(chan struct{}), done: make(chan struct{}), err: ErrClosed}
	return i.listening, true
}

func (i *invitation) run(run *listening) {
	defer close(run.done)
	ctx, cancel := context.WithTimeout(i.lifetime, listenLimit)
	defer cancel()
	run.err = i.registry.contain("waiting for a sign-in", func() (err error) {
		run.signedIn, err = i.await(ctx, func() { close(run.ready) })
		return err
	})
	run.endedAt = i.registry.config.Now()
}

// await listens for the signer with connections that belong to nobody, asks it who it
// signs for, and signs that account in.
func (i *invitation) await(ctx context.Context, ready func()) (SignedIn, error) {
	relays, hangUp, err := i.registry.lines.take(&i.registry.config)
	if err != nil {
		return SignedIn{}, err
	}
	defer hangUp()
	connection, err := i.approval(ctx, relays, ready)
	if err != nil {
		return SignedIn{}, err
	}
	pubkey, err := i.ask(ctx, relays, connection)
	if err != nil {
		return SignedIn{}, err
	}
	identity, err := secrets.NewBunkerIdentity(pubkey, secrets.BunkerConnection{
		PrivateKey:   secrets.NewSecret(connection.PrivateKey.Hex()),
		RemotePubkey: connection.RemotePubkey,
		Relays:       connection.Relays,
	})
	if err != nil {
		return SignedIn{}, fault.New(fault.SessionConnectFailed, "The signer answered with an account that cannot be used: %w", err)
	}
	return i.registry.signIn(ctx, identity)
}

func (i *invitation) approval(ctx context.Context, client *relay.Client, ready func()) (signer.Connection, error) {
	i.mu.Lock()
	approved := i.approved
	i.mu.Unlock()
	if approved != nil {
		return *approved, nil
	}
	journal := i.registry.config.Journal
	connection, err := signer.Listen(ctx, client, i.shown, signer.ListenConfig{Logger: journal, Ready: ready})
	if errors.Is(err, signer.ErrNoApproval) {
		return signer.Connection{}, fault.New(fault.NostrConnectTimeout, "No signer has answered the sign-in code: show it again and approve it in the signer app.").Transient()
	}
	if err != nil {
		return signer.Connection{}, fmt.Errorf("waiting for the signer: %w", err)
	}
	i.mu.Lock()
	i.approved = &connection
	i.mu.Unlock()
	return connection, nil
}

func (i *invitation) ask(ctx context.Context, client *relay.Client, connection signer.Connection) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, i.registry.askTimeout)
	defer cancel()
	remote, err := signer.NewRemote(ctx, signer.Config{Connection: connection, Client: client, Logger: i.registry.config.RelayLogger})
	if err != nil {
		return "", fmt.Errorf("connecting the approved signer: %w", err)
	}
	defer remote.Close()
	pubkey, err := remote.GetPublicKey(ctx)
	if err != nil {
		return "", fault.New(fault.SessionConnectFailed, "The signer approved the sign-in but did not tell its account (%w): try again.", err).Transient()
	}
	if pubkey == connection.RemotePubkey {
		return pubkey, nil // its answers are signed with that very key
	}
	if err := i.prove(ctx, remote); err != nil {
		return "", fault.New(fault.SessionConnectFailed, "The signer says it acts for %s but does not sign as that account (%w): nobody was signed in.", pubkey, err)
	}
	return pubkey, nil
}

// prove has the signer sign as the account it names. Its word alone would let whoever
// scans a code take anybody's place, and the keys kept for them. The event is a NIP-42
// answer to a challenge of our own: no relay ever takes it.
func (i *invitation) prove(ctx context.Context, remote *signer.Remote) error {
	challenge := make([]byte, 16)
	if _, err := io.ReadFull(i.registry.config.Random, challenge); err != nil {
		return fmt.Errorf("drawing a challenge: %w", err)
	}
	event := nip42.CreateUnsignedAuthEvent(hex.EncodeToString(challenge), remote.PublicKey(), i.registry.config.Environment.HostrRelay)
	return remote.SignEvent(ctx, &event)
}
