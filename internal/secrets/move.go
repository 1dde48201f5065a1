package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"hostr-daemon/internal/fault"
)

// movable is a place whose entries can be moved as a whole.
type movable interface {
	backend
	entries(ctx context.Context) (document, error)
	// absorb adds entries. Where there is one already both are merged.
	absorb(ctx context.Context, added document) error
	// discard removes everything, or fails with errChanged if it is no longer what is
	// given.
	discard(ctx context.Context, known document) error
}

var errChanged = errors.New("the entries have changed")

// Moved tells what a move has done.
type Moved struct {
	From, To Place
	// Entries is how many have moved, none when there was nothing to move; Accounts how
	// many of them are sign-ins.
	Entries, Accounts int
}

// Move brings all entries of an environment to another place and removes them where
// they were, which is from or, if that is empty, the only other place that has any.
// What is in both places is merged; where that is impossible what comes counts, as it
// is what was in use.
//
// Nothing is removed before everything reads back from its new place. A move that was
// cut off, however, has lost nothing, and the next one ends it. No daemon may run on the
// environment meanwhile: the caller holds its state directory.
func Move(ctx context.Context, options Options, from, to Kind) (Moved, error) {
	places, err := options.movables(from, to)
	if err != nil {
		return Moved{}, err
	}
	return places.move(ctx, from, to)
}

// movables are the places by their kind. One that was not built has no entries.
type movables map[Kind]movable

// movables fails where the key of an encrypted file that takes part is missing.
func (o Options) movables(from, to Kind) (movables, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	key, err := o.key()
	if err != nil {
		return nil, err
	}
	plain, encrypted := o.files()
	places := movables{PlainFile: newPlainFile(plain), Keyring: newKeyring(runtime.GOOS)}
	if !key.IsEmpty() {
		places[EncryptedFile] = newEncryptedFile(encrypted, "", key)
		return places, nil
	}
	if to == EncryptedFile {
		return nil, fault.New(fault.UnexpectedError, "An encrypted file needs a key, and none was given.").
			WithHint("Set " + keyVariable + " or --secrets-key-file; make a key with: openssl rand -base64 32")
	}
	_, err = os.Lstat(encrypted)
	if takesPart := from == "" || from == EncryptedFile; takesPart && !errors.Is(err, fs.ErrNotExist) {
		return nil, keyMissing(encrypted)
	}
	return places, nil
}

func (m movables) move(ctx context.Context, from, to Kind) (Moved, error) {
	target := m[to]
	if from == to || target == nil {
		return Moved{}, fault.New(fault.UnexpectedError, "Private keys cannot be moved from %q to %q.", from, to)
	}
	if err := target.check(ctx); err != nil {
		return Moved{}, err
	}
	moved := Moved{To: target.place()}
	source := m[from]
	if from == "" {
		var err error
		if source, err = m.onlyOther(ctx, to); err != nil {
			return Moved{}, err
		}
	}
	if source == nil {
		return moved, nil
	}
	moved.From = source.place()
	entries, err := transfer(ctx, source, target)
	if err != nil {
		return Moved{}, err
	}
	for key := range entries {
		moved.Entries++
		if _, ok := sessionOf(key); ok {
			moved.Accounts++
		}
	}
	return moved, nil
}

// onlyOther returns the place beside one that has entries, nil when none has. One that
// cannot be asked counts as empty unless it is the last hope.
func (m movables) onlyOther(ctx context.Context, to Kind) (movable, error) {
	var found []movable
	var names []string
	var mute error
	for _, kind := range []Kind{PlainFile, EncryptedFile, Keyring} {
		candidate := m[kind]
		if kind == to || candidate == nil {
			continue
		}
		keys, err := candidate.keys(ctx)
		if err != nil {
			mute = errors.Join(mute, err)
		}
		if len(keys) > 0 {
			found, names = append(found, candidate), append(names, candidate.place().Where)
		}
	}
	switch {
	case len(found) > 1:
		return nil, fault.New(fault.UnexpectedError, "Private keys rest in several places: %s.", strings.Join(names, " and ")).
			WithHint("Move them one after another: say with --from which comes first.")
	case len(found) == 1:
		return found[0], nil
	default:
		return nil, mute
	}
}

// transferTries bounds how often a source is copied anew that another program changes.
const transferTries = 3

// transfer moves everything and returns it.
func transfer(ctx context.Context, source, target movable) (document, error) {
	for range transferTries {
		entries, err := source.entries(ctx)
		if err != nil {
			return nil, err
		}
		if err := target.absorb(ctx, entries); err != nil {
			return nil, err
		}
		if err := verify(ctx, target, entries); err != nil {
			return nil, err
		}
		err = source.discard(ctx, entries)
		if !errors.Is(err, errChanged) {
			return entries, err
		}
	}
	return nil, fault.New(fault.UnexpectedError, "Private keys were not moved out of %s: another program keeps changing them.", source.place().Where).
		WithHint("Stop that program, then move them again.")
}

// verify reads everything back. A merge that changes nothing shows that all is there.
func verify(ctx context.Context, target movable, entries document) error {
	for key := range entries {
		want, given := entries.value(key)
		if !given {
			continue
		}
		got, stored, err := target.read(ctx, key)
		if err != nil {
			return err
		}
		if !stored || trimmed(merged(key, got, want)) != trimmed(got) {
			return fault.New(fault.UnexpectedError, "A private key did not come back from %s as it was put there. Nothing was removed from where it was.", target.place().Where).
				WithHint("Look whether that place works: hostr-daemon doctor. Then move them again, or to another place.")
		}
	}
	return nil
}

// merged is the text of an entry that two places have.
func merged(key, earlier, later string) string {
	if earlier == later {
		return earlier
	}
	return mergeEntries(key, earlier, later)
}

// trimmed is a text as a keyring gives it back.
func trimmed(text string) string { return strings.TrimRight(text, whiteSpace) }

func (f *file) entries(ctx context.Context) (document, error) { return f.all(ctx) }

func (f *file) absorb(ctx context.Context, added document) error {
	return f.exclusively(ctx, func() error {
		entries, err := f.load()
		if err != nil {
			return err
		}
		return f.save(entries.merge(added))
	})
}

func (f *file) discard(ctx context.Context, known document) error {
	return f.exclusively(ctx, func() error {
		entries, err := f.load()
		if err != nil {
			return err
		}
		if !entries.equal(known) {
			return errChanged
		}
		if err := removeSecrets(f.path); err != nil {
			return fault.New(fault.UnexpectedError, "Private keys were copied out of %s, but the file cannot be removed: %w.", f.path, reasonOf(err)).
				WithHint("Mend that, then move them again.")
		}
		return nil
	})
}

func (k *keyring) entries(ctx context.Context) (document, error) {
	keys, err := k.keys(ctx)
	if err != nil {
		return nil, err
	}
	entries := make(document, len(keys))
	for _, key := range keys {
		value, stored, err := k.read(ctx, key)
		if err != nil {
			return nil, err
		}
		if stored {
			entries[key] = json.RawMessage(encodeJSON(value))
		}
	}
	return entries, nil
}

func (k *keyring) absorb(ctx context.Context, added document) error {
	for _, key := range added.keys() {
		value, given := added.value(key)
		if !given {
			continue
		}
		err := k.update(ctx, key, func(old string, stored bool) (string, bool, error) {
			if stored {
				return trimmed(merged(key, old, value)), true, nil
			}
			return trimmed(value), true, nil
		})
		if err != nil {
			return fmt.Errorf("moving private keys into the keyring: %w", err)
		}
	}
	return nil
}

func (k *keyring) discard(ctx context.Context, known document) error {
	for _, key := range known.keys() {
		value, _ := known.value(key)
		err := k.update(ctx, key, func(old string, stored bool) (string, bool, error) {
			if stored && old != value {
				return "", false, errChanged
			}
			return "", false, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
