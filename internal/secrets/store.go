package secrets

import (
	"context"
	"errors"
	"unicode/utf8"

	"hostr-daemon/internal/fault"
)

// Store holds entries, key to text, in one place. Safe for concurrent use, and for
// use by several processes: an update is never lost to another one.
type Store struct {
	backend backend
}

// Kind is a kind of place for secrets.
type Kind string

// The kinds of places.
const (
	Keyring       Kind = "keyring"
	EncryptedFile Kind = "encrypted-file"
	PlainFile     Kind = "file"
	None          Kind = "none"
)

// Place says where a store keeps its entries.
type Place struct {
	Kind Kind `json:"kind"`
	// Where is the path of the file or the name of the keyring, for people.
	Where string `json:"where"`
}

// Change computes the new text of an entry from the old one. keep false removes
// the entry; an error leaves it as it is and is returned by Update.
type Change func(old string, stored bool) (value string, keep bool, err error)

var (
	// ErrNoBackend is in the error of a write when there is no place for secrets.
	ErrNoBackend = errors.New("no place to keep private keys")
	// ErrWrongKey is in the error of an encrypted file that another key was used for.
	ErrWrongKey = errors.New("the key does not fit")
	// ErrDamaged is in the error of a file that is not what the daemon wrote.
	ErrDamaged = errors.New("the file is damaged")
)

// backend is one place for entries.
type backend interface {
	read(ctx context.Context, key string) (value string, ok bool, err error)
	update(ctx context.Context, key string, change Change) error
	keys(ctx context.Context) ([]string, error)
	// check fails if entries could not be read and written now.
	check(ctx context.Context) error
	place() Place
}

// Read returns the text of an entry. ok is false if there is none, also where there
// is no place for secrets at all (spec 11 §5.1).
func (s *Store) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	return s.backend.read(ctx, key)
}

// Write sets an entry. It has reached the disk or the keyring when Write returns.
func (s *Store) Write(ctx context.Context, key, value string) error {
	return s.Update(ctx, key, func(string, bool) (string, bool, error) { return value, true, nil })
}

// Delete removes an entry; one that does not exist is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.backend.update(ctx, key, drop)
}

// Update changes an entry, with no other update in between. A file is held against
// other processes too, a keyring against this process only.
func (s *Store) Update(ctx context.Context, key string, change Change) error {
	return s.backend.update(ctx, key, func(old string, stored bool) (string, bool, error) {
		value, keep, err := change(old, stored)
		if err == nil && keep && !(utf8.ValidString(key) && utf8.ValidString(value)) {
			err = fault.New(fault.UnexpectedError, "A secret was not stored: it is no UTF-8 text.")
		}
		return value, keep, err
	})
}

// Keys returns the keys of all entries, sorted. A keyring has those of all environments.
func (s *Store) Keys(ctx context.Context) ([]string, error) { return s.backend.keys(ctx) }

// Check fails if entries cannot be read or written now, and says what to mend. It
// changes no entry.
func (s *Store) Check(ctx context.Context) error { return s.backend.check(ctx) }

// Place says where the entries are.
func (s *Store) Place() Place { return s.backend.place() }

func drop(string, bool) (string, bool, error) { return "", false, nil }
