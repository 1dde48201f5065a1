package secrets

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"hostr-daemon/internal/fault"
)

// Records are the entries of one session (spec 11 §5.2). Safe for concurrent use.
type Records struct {
	store  *Store
	prefix string
	label  string // for errors

	mu sync.Mutex
	// known is the sign-in last read and its text: every request reads it, and
	// checking its keys takes longer than reading it.
	known     Identity
	knownText string
}

const (
	sessionPrefix = "hostr-session/"

	authSuffix         = "auth"
	seedSuffix         = "seed"
	walletSuffix       = "nwc"
	messageCacheSuffix = "message_cache_key"
)

var (
	// ErrUnreadableIdentity is in the error of a stored sign-in that cannot be read.
	ErrUnreadableIdentity = errors.New("the stored sign-in is unreadable")
	// ErrSignedOut is in the error of a change to a sign-in that is not stored.
	ErrSignedOut = errors.New("the account is not signed in here")
)

// ForSession returns the records of a session. Its key is an account or any other
// text; empty means the foreground session.
func ForSession(store *Store, sessionKey string) *Records {
	sessionKey = strings.TrimSpace(sessionKey)
	if sessionKey == "" {
		return &Records{store: store, label: "the foreground session"}
	}
	// A key may be the bridge's session id, which is not for logs as a whole.
	const shown = 8
	label := sessionKey
	if runes := []rune(sessionKey); len(runes) > shown {
		label = string(runes[:shown]) + "…"
	}
	return &Records{store: store, prefix: sessionPrefix + sessionKey + "/", label: "session " + label}
}

// SessionKeys returns the keys of the sessions with a stored sign-in, sorted, the
// foreground session as "".
func SessionKeys(ctx context.Context, store *Store) ([]string, error) {
	entries, err := store.Keys(ctx)
	if err != nil {
		return nil, err
	}
	var sessions []string
	for _, entry := range entries {
		if key, ok := sessionOf(entry); ok {
			sessions = append(sessions, key)
		}
	}
	slices.Sort(sessions)
	return sessions, nil
}

// sessionOf returns whose sign-in an entry is.
func sessionOf(entry string) (key string, ok bool) {
	if entry == authSuffix {
		return "", true
	}
	key, ok = strings.CutSuffix(entry, "/"+authSuffix)
	return strings.TrimPrefix(key, sessionPrefix), ok && strings.HasPrefix(key, sessionPrefix)
}

// Identity returns the stored sign-in, which others may share: what it points to
// must not be changed. ok is false when signed out. A sign-in that
// cannot be read is an error with ErrUnreadableIdentity, and stays as it is.
func (r *Records) Identity(ctx context.Context) (identity Identity, ok bool, err error) {
	text, stored, err := r.store.Read(ctx, r.prefix+authSuffix)
	if err != nil || !stored {
		return Identity{}, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if text == r.knownText && text != "" {
		return r.known, true, nil
	}
	identity, ok, err = parseAuth(text)
	if err != nil {
		return Identity{}, false, r.unreadable(err)
	}
	if ok {
		r.known, r.knownText = identity, text
	}
	return identity, ok, nil
}

// SignIn stores an identity in place of whatever was there, and returns it as
// stored: with the higher MaxAccountIndex if the same account was signed in.
func (r *Records) SignIn(ctx context.Context, identity Identity) (Identity, error) {
	if err := identity.resolve(); err != nil {
		return Identity{}, fault.New(fault.UnexpectedError, "The sign-in of %s was not stored: %w.", r.label, err)
	}
	err := r.store.Update(ctx, r.prefix+authSuffix, func(old string, _ bool) (string, bool, error) {
		if earlier, ok, err := parseAuth(old); ok && err == nil {
			identity = identity.carryIndex(earlier)
		}
		return encodeJSON([]string{identity.record()}), true, nil
	})
	if err != nil {
		return Identity{}, err
	}
	return identity, nil
}

// SignOut removes the sign-in. Seed and wallet connections stay (spec 11 §7).
func (r *Records) SignOut(ctx context.Context) error {
	r.mu.Lock()
	r.known, r.knownText = Identity{}, ""
	r.mu.Unlock()
	return r.store.Delete(ctx, r.prefix+authSuffix)
}

// RaiseMaxAccountIndex stores a trade account index as reserved for the account and
// returns the highest one, which never falls. It fails with ErrSignedOut if another
// account is signed in, or none.
func (r *Records) RaiseMaxAccountIndex(ctx context.Context, account string, index int) (highest int, err error) {
	err = r.store.Update(ctx, r.prefix+authSuffix, func(old string, stored bool) (string, bool, error) {
		identity, ok, err := parseAuth(old)
		if err != nil {
			return "", false, r.unreadable(err)
		}
		if !ok || identity.PublicKey != account {
			return "", false, fault.New(fault.AuthRequired, "A trade account was not reserved in %s: %w.", r.label, ErrSignedOut)
		}
		highest = max(identity.MaxAccountIndex, index)
		if highest == identity.MaxAccountIndex {
			return old, stored, nil
		}
		identity.MaxAccountIndex = highest
		return encodeJSON([]string{identity.record()}), true, nil
	})
	return highest, err
}

// Seed returns the account seed, 64 lowercase hex digits (spec 20 §12.1).
func (r *Records) Seed(ctx context.Context, account string) (seed Secret, ok bool, err error) {
	return r.key(ctx, seedSuffix, account)
}

// SetSeed stores the account seed in place of an earlier one of that account.
func (r *Records) SetSeed(ctx context.Context, account string, seed Secret) error {
	digits := strings.ToLower(seed.Reveal())
	if !isHexKey(digits) {
		return fault.New(fault.UnexpectedError, "An account seed was not stored: it is not 64 hex digits.")
	}
	return r.setList(ctx, seedSuffix, account, []string{digits})
}

// WalletConnections returns the wallet connection URIs of the account.
func (r *Records) WalletConnections(ctx context.Context, account string) ([]Secret, error) {
	values, err := r.list(ctx, walletSuffix, account)
	var connections []Secret
	for _, value := range values {
		connections = append(connections, NewSecret(value))
	}
	return connections, err
}

// SetWalletConnections replaces the wallet connection URIs of the account.
func (r *Records) SetWalletConnections(ctx context.Context, account string, connections []Secret) error {
	var values []string
	for _, connection := range connections {
		values = append(values, connection.Reveal())
	}
	return r.setList(ctx, walletSuffix, account, values)
}

// MessageCacheKey returns the key of the account's message cache, 64 lowercase hex
// digits, and makes one if there is none (spec 60 §11.1): rows written before are
// then unreadable. Without a place for secrets it fails with ErrNoBackend.
func (r *Records) MessageCacheKey(ctx context.Context, account string) (key Secret, made bool, err error) {
	key, ok, err := r.key(ctx, messageCacheSuffix, account)
	if err != nil || ok || account == "" {
		return key, false, err
	}
	err = r.store.Update(ctx, r.prefix+messageCacheSuffix, func(old string, stored bool) (string, bool, error) {
		list := parseList(old)
		if key, ok = firstKey(list, account); ok { // made meanwhile
			return old, stored, nil
		}
		raw := make([]byte, keyLength)
		_, _ = rand.Read(raw) // never fails: it ends the process instead
		key, made = NewSecret(hex.EncodeToString(raw)), true
		return encodeJSON(withAccount(list, account, []string{key.Reveal()})), true, nil
	})
	if err != nil {
		return Secret{}, false, err
	}
	return key, made, nil
}

// DeleteMessageCacheKey removes the key of the account's message cache.
func (r *Records) DeleteMessageCacheKey(ctx context.Context, account string) error {
	return r.setList(ctx, messageCacheSuffix, account, nil)
}

func (r *Records) key(ctx context.Context, suffix, account string) (Secret, bool, error) {
	text, _, err := r.store.Read(ctx, r.prefix+suffix)
	if err != nil {
		return Secret{}, false, err
	}
	key, ok := firstKey(parseList(text), account)
	return key, ok, nil
}

// list returns the account's elements of a list; without an account there are none.
func (r *Records) list(ctx context.Context, suffix, account string) ([]string, error) {
	text, stored, err := r.store.Read(ctx, r.prefix+suffix)
	if err != nil || !stored || account == "" {
		return nil, err
	}
	return ofAccount(parseList(text), account), nil
}

// setList replaces the account's elements and keeps the others; a list without any
// is removed. Without an account nothing is written.
func (r *Records) setList(ctx context.Context, suffix, account string, values []string) error {
	if account == "" {
		return nil
	}
	return r.store.Update(ctx, r.prefix+suffix, func(old string, _ bool) (string, bool, error) {
		changed := withAccount(parseList(old), account, values)
		return encodeJSON(changed), len(changed) > 0, nil
	})
}

func (r *Records) unreadable(err error) error {
	return fault.New(fault.UnexpectedError, "In %s %w.", r.label, fmt.Errorf("%w: %s", ErrUnreadableIdentity, err)).
		WithHint("Sign in again to replace it. Until then it is left as it is.")
}

// firstKey returns the account's first element that is a key.
func firstKey(list []string, account string) (Secret, bool) {
	if account == "" {
		return Secret{}, false
	}
	for _, value := range ofAccount(list, account) {
		if value = strings.ToLower(value); isHexKey(value) {
			return NewSecret(value), true
		}
	}
	return Secret{}, false
}

// parseAuth reads the text of an auth entry: its first non-blank element counts. ok
// is false if there is none, which means signed out. A damaged text, such as one that is
// cut off, is an error instead: taken for signed out, it would be replaced without a
// word, and the trade indexes that are used up would be forgotten with it.
func parseAuth(text string) (identity Identity, ok bool, err error) {
	list, whole := parseWholeList(text)
	elements := nonBlank(list)
	switch {
	case len(elements) > 0:
	case whole:
		return Identity{}, false, nil
	default:
		return Identity{}, false, errors.New("it is no list of texts")
	}
	identity, err = ParseIdentity(elements[0])
	return identity, err == nil, err
}

// mergeIdentities returns the later auth entry with the higher index of both, or
// the earlier one if the later cannot be read.
func mergeIdentities(earlier, later string) string {
	identity, ok, err := parseAuth(later)
	if err != nil || !ok {
		return earlier
	}
	if former, ok, err := parseAuth(earlier); ok && err == nil {
		identity = identity.carryIndex(former)
	}
	return encodeJSON([]string{identity.record()})
}
