// Package signerapp is the signer app of the sandbox: it holds a person's key and
// signs for others over a relay (NIP-46), after scanning a nostrconnect:// code or
// by giving out a bunker:// address. It can be told to be slow, offline, unwilling or
// wrong, in the ways real signers are.
//
// It speaks the protocol with its own code; it must never import the daemon's.
package signerapp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"
)

// Options say whose signer it is.
type Options struct {
	// PrivateKey is the account's, 64 hex digits.
	PrivateKey string
	// TransportKey signs and encrypts the messages, as many bunkers do with a key of
	// their own; the account's when empty.
	TransportKey string
	Logger       zerolog.Logger
}

// App is a signer app. It is online from the first Scan or Serve on and may be used
// concurrently.
type App struct {
	account, transport keys
	log                zerolog.Logger
	ledger             *ledger

	mu        sync.Mutex
	closed    bool
	offline   bool
	behaviour Behaviour
	links     map[string]*link // by relay URL
	clients   map[string]bool  // client keys that may ask
	secrets   map[string]bool  // of bunker addresses given out
	held      []heldRequest

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// keys are a key pair in hex.
type keys struct{ private, public string }

func newKeys(private string) (keys, error) {
	public, err := nostr.GetPublicKey(private)
	if err != nil || !nostr.IsValidPublicKey(public) {
		return keys{}, errors.New("not a private key of 64 hex digits")
	}
	return keys{private, public}, nil
}

// New returns an app that talks to no relay yet.
func New(o Options) (*App, error) {
	account, err := newKeys(o.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("the account's key: %w", err)
	}
	transport := account
	if o.TransportKey != "" {
		if transport, err = newKeys(o.TransportKey); err != nil {
			return nil, fmt.Errorf("the transport key: %w", err)
		}
	}
	a := &App{
		account: account, transport: transport, log: o.Logger, ledger: newLedger(),
		links: map[string]*link{}, clients: map[string]bool{}, secrets: map[string]bool{},
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

// PublicKey returns the account, 64 hex digits.
func (a *App) PublicKey() string { return a.account.public }

// RemotePubkey returns the key the app communicates with.
func (a *App) RemotePubkey() string { return a.transport.public }

// Scan reads a nostrconnect:// URI and answers with its secret, once the app listens
// on the URI's relays. From then on the URI's client may ask.
func (a *App) Scan(ctx context.Context, uri string) error {
	rest, found := strings.CutPrefix(uri, "nostrconnect://")
	client, query, hasQuery := strings.Cut(rest, "?")
	if !found || !hasQuery || !nostr.IsValidPublicKey(client) {
		return errors.New("not a nostrconnect:// URI")
	}
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the parameters of the nostrconnect:// URI cannot be read")
	}
	// The secret is not percent-encoded: ParseQuery would read a plus sign as a blank.
	secret := rawParameter(query, "secret")
	if len(parameters["relay"]) == 0 || secret == "" {
		return errors.New("the nostrconnect:// URI has no relay or no secret")
	}
	if err := a.join(ctx, parameters["relay"]); err != nil {
		return err
	}
	a.mu.Lock()
	a.clients[client] = true
	behaviour := a.behaviour.take("scan")
	a.mu.Unlock()
	return a.introduce(ctx, client, secret, behaviour)
}

// introduce sends the secret to the client, and what the behaviour wants before it.
func (a *App) introduce(ctx context.Context, client, secret string, behaviour Behaviour) error {
	results := []string{secret}
	if behaviour.Acknowledge {
		results = []string{"ack"}
	}
	if behaviour.WrongSecretFirst {
		results = append([]string{"ack", secret + "="}, results...)
	}
	for _, result := range results {
		content, err := a.seal(client, answer{ID: randomID(), Result: text(result)}.encode(), behaviour.NIP04)
		if err != nil {
			return err
		}
		if err := a.publish(ctx, client, content); err != nil {
			return err
		}
	}
	return nil
}

// Serve listens on the relays and returns a bunker:// address with a fresh secret.
func (a *App) Serve(ctx context.Context, relays ...string) (bunkerURI string, err error) {
	if err := a.join(ctx, relays); err != nil {
		return "", err
	}
	secret := randomID()
	a.mu.Lock()
	a.secrets[secret] = true
	a.mu.Unlock()
	query := url.Values{"relay": relays, "secret": {secret}}
	return "bunker://" + a.transport.public + "?" + query.Encode(), nil
}

// Behave sets the behaviour and replaces the one set before.
func (a *App) Behave(behaviour Behaviour) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.behaviour = behaviour
}

// Revoke forgets all clients: their requests are not authorized any more.
func (a *App) Revoke() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.clients)
}

// Offline ends all connections, as a phone that loses its network. It returns when
// they are gone.
func (a *App) Offline() {
	a.mu.Lock()
	a.offline = true
	links := a.linkList()
	a.mu.Unlock()
	for _, l := range links {
		l.stop()
	}
}

// Online connects again to the relays of before and returns when the app listens
// there.
func (a *App) Online(ctx context.Context) error {
	a.mu.Lock()
	a.offline = false
	var relays []string
	for relay := range a.links {
		relays = append(relays, relay)
	}
	clear(a.links)
	a.mu.Unlock()
	return a.join(ctx, relays)
}

// Close ends the app and waits for its goroutines.
func (a *App) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	a.tasks.Wait()
}

// join makes sure that the app listens on the relays.
func (a *App) join(ctx context.Context, relays []string) error {
	var joined []*link
	a.mu.Lock()
	for _, relay := range relays {
		if a.closed || a.offline {
			a.mu.Unlock()
			return errors.New("the signer app is offline")
		}
		l := a.links[relay]
		if l == nil {
			l = newLink(a, relay)
			a.links[relay] = l
			a.tasks.Go(l.run)
		}
		joined = append(joined, l)
	}
	a.mu.Unlock()
	for _, l := range joined {
		if err := l.awaitListening(ctx); err != nil {
			return err
		}
	}
	return nil
}

// linkList needs the lock.
func (a *App) linkList() []*link {
	var list []*link
	for _, l := range a.links {
		list = append(list, l)
	}
	slices.SortFunc(list, func(x, y *link) int { return strings.Compare(x.url, y.url) })
	return list
}

// publish sends an event of the app to the client over every relay it is connected
// to. One that takes it is enough.
func (a *App) publish(ctx context.Context, client, content string) error {
	event := nostr.Event{
		Kind: nostr.KindNostrConnect, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"p", client}}, Content: content,
	}
	if err := event.Sign(a.transport.private); err != nil {
		return errors.New("the answer cannot be signed")
	}
	a.mu.Lock()
	links := a.linkList()
	a.mu.Unlock()
	err := errors.New("the signer app is connected to no relay")
	for _, l := range links {
		if sent := l.publish(ctx, event); sent == nil {
			err = nil
		} else if err != nil {
			err = sent
		}
	}
	return err
}

// rawParameter returns a parameter of a query as it stands there.
func rawParameter(query, name string) string {
	for parameter := range strings.SplitSeq(query, "&") {
		if value, found := strings.CutPrefix(parameter, name+"="); found {
			return value
		}
	}
	return ""
}

func randomID() string {
	raw := make([]byte, 12)
	_, _ = rand.Read(raw) // It never fails.
	return hex.EncodeToString(raw)
}
