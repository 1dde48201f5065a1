package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"hostr-daemon/internal/fault"
)

// Options say where secrets may rest.
type Options struct {
	// StateDir is the state directory, with ~ resolved.
	StateDir string
	// Environment is the canonical name of the environment, the folder of its files.
	Environment string
	// AllowPlainFile is --allow-insecure-file-secrets.
	AllowPlainFile bool
	// KeyFile is --secrets-key-file; blank means not given.
	KeyFile string
	// Getenv reads the process environment; nil means os.Getenv.
	Getenv func(string) string
}

const (
	allowVariable   = "HOSTR_CLI_ALLOW_INSECURE_STORAGE"
	storageVariable = "HOSTR_CLI_STORAGE"
	keyVariable     = "HOSTR_DAEMON_SECRETS_KEY"
	keyFileVariable = "HOSTR_DAEMON_SECRETS_KEY_FILE"

	plainName     = "secrets.json"
	encryptedName = "secrets.enc"

	// minKeyLength is in bytes.
	minKeyLength  = 16
	maxKeyFileLen = 64 << 10
)

// Open chooses the place: the encrypted file when a key is given, else the plain
// file when it is allowed, else the keyring (spec 11 §5.1). It reads the key, but
// no entry, and writes nothing.
//
// Without any place Open succeeds, since whoever only browses needs none: reads
// then find nothing, and writes fail with ErrNoBackend. Open fails if the key is
// unusable, and if there is an encrypted file but no key for it.
func Open(options Options) (*Store, error) {
	if options.Getenv == nil {
		options.Getenv = os.Getenv
	}
	key, err := options.key()
	if err != nil {
		return nil, err
	}
	plain, encrypted := options.files()
	if !key.IsEmpty() {
		return &Store{newMigrating(newEncryptedFile(encrypted, plain, key), newKeyring(runtime.GOOS))}, nil
	}
	if _, err := os.Lstat(encrypted); !errors.Is(err, fs.ErrNotExist) {
		return nil, keyMissing(encrypted)
	}
	if options.plainFileAllowed() {
		return &Store{newPlainFile(plain)}, nil
	}
	return &Store{newKeyring(runtime.GOOS)}, nil
}

// files are the paths of the environment's files.
func (o Options) files() (plain, encrypted string) {
	folder := filepath.Join(o.StateDir, o.Environment)
	return filepath.Join(folder, plainName), filepath.Join(folder, encryptedName)
}

func keyMissing(encrypted string) error {
	return fault.New(fault.UnexpectedError,
		"Private keys of this state directory are in the encrypted file %s, but no key was given to open it.", encrypted).
		WithHint("Set " + keyVariable + " or --secrets-key-file. To start without those accounts, move the file away.")
}

func (o Options) plainFileAllowed() bool {
	storage := o.Getenv(storageVariable)
	return o.AllowPlainFile || o.Getenv(allowVariable) == "1" || storage == "insecure-file" || storage == "file"
}

// key returns the key of the encrypted file, or the empty secret.
func (o Options) key() (Secret, error) {
	key, file := strings.TrimSpace(o.Getenv(keyVariable)), o.KeyFile
	source := "the variable " + keyVariable
	if strings.TrimSpace(file) == "" {
		file = o.Getenv(keyFileVariable)
		if key != "" && strings.TrimSpace(file) != "" {
			return Secret{}, fault.New(fault.UnexpectedError, "Both %s and %s are set: which key is meant is unclear. Set one of them.", keyVariable, keyFileVariable)
		}
	}
	if strings.TrimSpace(file) != "" {
		source = "the key file " + file
		content, err := readKeyFile(file)
		if err != nil {
			return Secret{}, fault.New(fault.UnexpectedError, "The key of the encrypted secrets file cannot be read from %s: %w.", file, reasonOf(err))
		}
		if key = string(bytes.TrimSpace(content)); key == "" {
			return Secret{}, fault.New(fault.UnexpectedError, "The key of the encrypted secrets file is missing: %s is empty.", source)
		}
	}
	if key != "" && len(key) < minKeyLength {
		return Secret{}, fault.New(fault.UnexpectedError, "The key in %s is too short: it needs at least %d characters.", source, minKeyLength).
			WithHint("Make one with: openssl rand -base64 32")
	}
	return NewSecret(key), nil
}

// readKeyFile reads pipes too, as shells make them of a command's output.
func readKeyFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxKeyFileLen+1))
	if err == nil && len(content) > maxKeyFileLen {
		err = fmt.Errorf("it is larger than %d bytes", maxKeyFileLen)
	}
	return content, err
}

// noBackend is the error of whatever needs a place for secrets where there is none.
func noBackend(cause error) error {
	missing := fmt.Errorf("%w on this machine, because %s", ErrNoBackend, cause)
	return fault.New(fault.UnexpectedError, "There is %w.", missing).
		WithHint("Choose one: a running keyring, which on Linux needs secret-tool (package libsecret-tools) and a Secret Service; " +
			"an encrypted file, with a key in " + keyVariable + " or --secrets-key-file FILE; " +
			"or a plain file that only its owner can read, with --allow-insecure-file-secrets or " + allowVariable + "=1.")
}
