package secrets

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// hundredSessions is a file store with a hundred accounts signed in.
func hundredSessions(b *testing.B, kind Kind) (*Store, string) {
	b.Helper()
	folder := b.TempDir()
	store := fileStore(kind, folder)
	entries := document{}
	for n := range 100 {
		account := testAccount(b, byte(n%90+1))
		prefix := fmt.Sprintf("%s%d/", sessionPrefix, n)
		entries = entries.with(prefix+authSuffix, encodeJSON([]string{account.identity.record()}), true).
			with(prefix+seedSuffix, encodeJSON([]string{account.pubkey + ":" + account.seed}), true)
	}
	file := store.backend.(*file)
	if err := makeFolder(folder); err != nil {
		b.Fatal(err)
	}
	if err := file.save(entries); err != nil {
		b.Fatal(err)
	}
	return store, folder
}

// BenchmarkIdentity is what every request of a signed-in account does (spec 20 §2).
func BenchmarkIdentity(b *testing.B) {
	for _, kind := range []Kind{PlainFile, EncryptedFile} {
		for _, age := range []time.Duration{0, time.Hour} {
			b.Run(fmt.Sprintf("%s/written %v ago", kind, age), func(b *testing.B) {
				store, folder := hundredSessions(b, kind)
				changed := time.Now().Add(-age)
				if age == 0 {
					changed = changed.Add(time.Hour) // never settles
				}
				for _, name := range []string{plainName, encryptedName} {
					_ = os.Chtimes(filepath.Join(folder, name), changed, changed)
				}
				records := ForSession(store, "50")
				b.ReportAllocs()
				for b.Loop() {
					if _, ok, err := records.Identity(b.Context()); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
			})
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, kind := range []Kind{PlainFile, EncryptedFile} {
		b.Run(string(kind), func(b *testing.B) {
			store, _ := hundredSessions(b, kind)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if err := store.Write(b.Context(), "auth", numbered(n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStretch(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		stretch([]byte("0123456789abcdef"), make([]byte, saltLength))
	}
}
