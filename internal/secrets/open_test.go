package secrets

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestOpenChoosesThePlace(t *testing.T) {
	t.Parallel()
	keyFile := filepath.Join(t.TempDir(), "key")
	writeFile(t, keyFile, "\n  0123456789abcdef canary\n", 0o600)
	for name, test := range map[string]struct {
		options Options
		env     map[string]string
		want    Kind
	}{
		"flag":                  {Options{AllowPlainFile: true}, nil, PlainFile},
		"allow":                 {Options{}, map[string]string{allowVariable: "1"}, PlainFile},
		"file":                  {Options{}, map[string]string{storageVariable: "file"}, PlainFile},
		"insecure-file":         {Options{}, map[string]string{storageVariable: "insecure-file", allowVariable: "0"}, PlainFile},
		"nothing":               {Options{}, nil, Keyring},
		"allowed by no value":   {Options{}, map[string]string{allowVariable: "true", storageVariable: "FILE"}, Keyring},
		"blank key":             {Options{KeyFile: " "}, map[string]string{keyVariable: "  "}, Keyring},
		"key":                   {Options{}, map[string]string{keyVariable: " 0123456789abcdef\n"}, EncryptedFile},
		"key before plain file": {Options{AllowPlainFile: true}, map[string]string{keyVariable: "0123456789abcdef"}, EncryptedFile},
		"key file":              {Options{KeyFile: keyFile}, nil, EncryptedFile},
		"key file by variable":  {Options{}, map[string]string{keyFileVariable: keyFile}, EncryptedFile},
		"option before key":     {Options{KeyFile: keyFile}, map[string]string{keyVariable: "short"}, EncryptedFile},
	} {
		state := t.TempDir()
		test.options.StateDir, test.options.Environment = state, "test"
		test.options.Getenv = func(name string) string { return test.env[name] }
		store, err := Open(test.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := store.Place()
		if _, isKeyring := store.backend.(*keyring); test.want == Keyring {
			if !isKeyring {
				t.Errorf("%s: got %v", name, got)
			}
			continue
		}
		file := map[Kind]string{PlainFile: plainName, EncryptedFile: encryptedName}[test.want]
		if want := (Place{test.want, filepath.Join(state, "test", file)}); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		if entries, err := os.ReadDir(state); err != nil || len(entries) > 0 {
			t.Errorf("%s: Open wrote %v, %v", name, entries, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	empty, long := filepath.Join(folder, "empty"), filepath.Join(folder, "long")
	writeFile(t, empty, " \n", 0o600)
	writeFile(t, long, strings.Repeat("canary", 20000), 0o600)
	for name, test := range map[string]struct {
		options Options
		env     map[string]string
		words   []string
	}{
		"short key":      {Options{}, map[string]string{keyVariable: "canary"}, []string{"too short", "at least 16", "openssl rand"}},
		"missing file":   {Options{KeyFile: filepath.Join(folder, "none")}, nil, []string{"cannot be read", "none", "no such file"}},
		"empty file":     {Options{KeyFile: empty}, nil, []string{"is empty"}},
		"long file":      {Options{KeyFile: long}, nil, []string{"larger than"}},
		"both variables": {Options{}, map[string]string{keyVariable: "canary0123456789", keyFileVariable: empty}, []string{"Both", keyVariable, keyFileVariable}},
		"folder as file": {Options{KeyFile: folder}, nil, []string{"cannot be read"}},
	} {
		test.options.StateDir, test.options.Environment = t.TempDir(), "test"
		test.options.Getenv = func(name string) string { return test.env[name] }
		store, err := Open(test.options)
		if store != nil {
			t.Errorf("%s: a store was opened", name)
		}
		mustFail(t, err, test.words...)
	}
}

// TestEncryptedFileWithoutItsKey must not fall back to a place anybody can read.
func TestEncryptedFileWithoutItsKey(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	env := map[string]string{keyVariable: "0123456789abcdef"}
	options := Options{StateDir: state, Environment: "test", AllowPlainFile: true, Getenv: func(name string) string { return env[name] }}
	store, err := Open(options)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, store, "auth", "x")
	maps.DeleteFunc(env, func(string, string) bool { return true })
	_, err = Open(options)
	mustFail(t, err, encryptedName, "no key was given", keyVariable, "--secrets-key-file", "move the file away")
	options.Environment = "production"
	if _, err := Open(options); err != nil {
		t.Errorf("another environment: %v", err)
	}
}

// TestOpenFindsTheCommand is not parallel: it changes the PATH of the process.
func TestOpenFindsTheCommand(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the keyring of this system is not found by PATH")
	}
	path, _ := fakeTool(t, "secret-tool")
	t.Setenv("PATH", filepath.Dir(path))
	t.Setenv(keyVariable, "must not reach the command")
	store, err := Open(Options{StateDir: t.TempDir(), Environment: "test", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, store, "auth", "x")
	mustRead(t, store, "auth")
	if got := store.Place().Kind; got != Keyring {
		t.Errorf("place %v", got)
	}
}
