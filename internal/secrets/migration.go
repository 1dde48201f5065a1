package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"hostr-daemon/internal/fault"
)

// moveFormer moves the entries of the plain file into this file and removes the
// plain one. It runs under the lock. A crash in between leaves the entries in both
// places, and the next start comes here again.
func (f *file) moveFormer() error {
	content, _, err := readRegular(f.former)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var former document
	if err == nil {
		former, err = parseDocument(content)
	}
	if err != nil {
		return fault.New(fault.UnexpectedError,
			"The plain secrets file %s cannot be moved into the encrypted one: %w. Both were left as they are.", f.former, reasonOf(err)).
			WithHint("Mend the file, or move it away.")
	}
	entries, err := f.load()
	if err != nil {
		return err
	}
	if err := f.save(entries.merge(former)); err != nil {
		return err
	}
	return removeSecrets(f.former)
}

// removeSecrets removes a file with what a link stands for, since removing the link
// alone would leave the secrets, and with what a killed writer left behind.
func removeSecrets(path string) error {
	gone := []string{path + temporarySuffix, path}
	if target, err := filepath.EvalSymlinks(path); err == nil && target != path {
		gone = []string{path + temporarySuffix, target + temporarySuffix, target, path}
	}
	for _, file := range gone {
		if err := removeFile(file); err != nil {
			return err
		}
	}
	return nil
}

// merge returns the entries of both. Where both have one, that of later wins: it
// was written after the last move, which had left nothing behind.
func (d document) merge(later document) document {
	merged := maps.Clone(d)
	if merged == nil {
		merged = document{}
	}
	for key, raw := range later {
		text, given := later.value(key)
		known, stored := d.value(key)
		switch {
		case !stored:
			merged[key] = raw
		case given && known != text:
			merged[key] = json.RawMessage(encodeJSON(mergeEntries(key, known, text)))
		}
	}
	return merged
}

// mergeEntries keeps the seeds and connections of accounts that only the earlier
// text has.
func mergeEntries(key, earlier, later string) string {
	switch suffix := key[strings.LastIndexByte(key, '/')+1:]; suffix {
	case authSuffix:
		return mergeIdentities(earlier, later)
	case seedSuffix, walletSuffix, messageCacheSuffix:
		return mergeAccountLists(earlier, later)
	default:
		return later
	}
}

// formerLimit is how long the keyring that is no longer used may take: nobody is
// waiting to unlock it.
const formerLimit = 5 * time.Second

// migrating is the encrypted file with the keyring as the place the entries come
// from. A keyring cannot be listed, so each entry moves when it is first asked for.
type migrating struct {
	*file
	former *keyring

	mu    sync.Mutex
	asked map[string]struct{} // entries that the keyring does not have (any more)
	mute  bool                // the keyring failed, and is not asked again for reading
}

func newMigrating(file *file, former *keyring) *migrating {
	return &migrating{file: file, former: former, asked: make(map[string]struct{})}
}

func (m *migrating) read(ctx context.Context, key string) (string, bool, error) {
	value, ok, err := m.file.read(ctx, key)
	if err != nil || ok {
		return value, ok, err
	}
	if err := m.moveFromKeyring(ctx, key); err != nil {
		return "", false, err
	}
	return m.file.read(ctx, key)
}

func (m *migrating) update(ctx context.Context, key string, change Change) error {
	if _, _, err := m.read(ctx, key); err != nil {
		return err
	}
	removed := false
	err := m.file.update(ctx, key, func(old string, stored bool) (string, bool, error) {
		value, keep, err := change(old, stored)
		removed = !keep
		return value, keep, err
	})
	if err != nil || !removed {
		return err
	}
	return m.clearFormer(ctx, key)
}

// moveFromKeyring moves an entry that the file does not have. A keyring that fails
// is left alone: nothing in it is lost.
func (m *migrating) moveFromKeyring(ctx context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, asked := m.asked[key]; asked || m.mute {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, formerLimit)
	defer cancel()
	value, found, err := m.former.read(limited, key)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		m.mute = true
		return nil
	}
	if !found {
		m.asked[key] = struct{}{}
		return nil
	}
	err = m.file.update(ctx, key, func(old string, stored bool) (string, bool, error) {
		if stored {
			return old, true, nil
		}
		return value, true, nil
	})
	if err != nil {
		return err
	}
	m.asked[key] = struct{}{}
	// If this fails the entry is in both places, and the file's is the one that counts.
	_ = m.former.update(limited, key, drop)
	return nil
}

// clearFormer removes what a move that was cut off left in the keyring: an entry
// that was deleted must not come back from there.
func (m *migrating) clearFormer(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, formerLimit)
	defer cancel()
	if err := m.former.update(ctx, key, drop); err != nil {
		return fault.New(fault.UnexpectedError,
			"The entry was removed from %s, but an older copy may still be in the keyring. %s", m.path, fault.From(err).Message).
			WithHint("Unlock the keyring and do the same again.").Transient()
	}
	return nil
}
