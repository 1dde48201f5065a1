package inbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/store"
)

// rows returns the cached messages of the person.
func (p *person) rows() []store.CachedMessage {
	p.t.Helper()
	rows, err := p.store.MessageCache(p.public).Messages(patient(p.t))
	if err != nil {
		p.t.Fatal(err)
	}
	return rows
}

// order returns the contents as the threads and the inbox list have them.
func (r *process) order() (texts []string) {
	r.Read(func(threads *market.Threads) {
		for _, thread := range threads.All() {
			for _, rumor := range thread.Events() {
				texts = append(texts, thread.Anchor+" "+rumor.Event.Content)
			}
		}
	})
	slices.Sort(texts)
	return texts
}

func TestRestartDecryptsNothing(t *testing.T) {
	t.Parallel()
	me, stranger := newPerson(t, commonRelay), newLocal(t, randomKey(t))
	me.app.remote = true
	began := time.Now()
	me.now = func() time.Time { return began }
	me.write(stranger, "one", "two", "three")
	first := me.start()
	first.send("mine", "trade", stranger.PublicKey())
	first.awaitTexts("one", "two", "three", "mine")
	if decrypted := me.app.count("nip44_decrypt"); decrypted != 6 {
		t.Errorf("%d decryptions of three messages", decrypted)
	}
	if strings.Contains(me.lastREQ(), "since") {
		t.Errorf("the first request has a lower bound: %s", me.lastREQ())
	}
	eventually(t, "the history is marked as complete", func() bool {
		completed, full, err := me.store.MessageCache(me.public).Marks(patient(t))
		return err == nil && completed.Equal(began.Truncate(time.Second)) && full.Equal(completed)
	})
	order := first.order()
	first.stop()

	for _, test := range []struct {
		name  string
		later time.Duration
		since bool
	}{
		{"soon", time.Hour, true},
		{"a day later", 24 * time.Hour, true},
		{"nine days later", 9 * 24 * time.Hour, false},
		{"the clock went back", -24 * time.Hour, false},
	} {
		me.now = func() time.Time { return began.Add(test.later) }
		again := me.start()
		again.awaitTexts("one", "two", "three", "mine")
		if diff := cmp.Diff(order, again.order()); diff != "" {
			t.Errorf("%s: threads (-before +after):\n%s", test.name, diff)
		}
		if want := []string{"mine", "three", "two", "one"}; !slices.Equal(again.seen.texts(), want) {
			t.Errorf("%s: in the order %q", test.name, again.seen.texts())
		}
		again.stop()
		if since := strings.Contains(me.lastREQ(), "since"); since != test.since {
			t.Errorf("%s: request %s", test.name, me.lastREQ())
		}
		if decrypted := me.app.count("nip44_decrypt"); decrypted > 0 {
			t.Errorf("%s: %d decryptions", test.name, decrypted)
		}
	}
}

// The lower bound leaves room for wraps dated back, and rests on the last full fetch.
func TestLowerBound(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_780_000_000, 0)
	week := 7 * 24 * time.Hour
	for _, test := range []struct {
		name            string
		completed, full time.Time
		want            int64
	}{
		{"nothing known", time.Time{}, time.Time{}, 0},
		{"just now", now, now, now.Unix() - 172800 - 3600},
		{"a week ago", now.Add(-week), now.Add(-week), now.Add(-week).Unix() - 172800 - 3600},
		{"full too long ago", now, now.Add(-week - time.Second), 0},
		{"in the future", now.Add(time.Second), now, 0},
		{"full in the future", now, now.Add(time.Second), 0},
	} {
		since := recalled{marks: marks{test.completed, test.full}}.since(now)
		if got := int64(0); since != nil && int64(*since) != test.want || since == nil && test.want != got {
			t.Errorf("%s: %v", test.name, since)
		}
	}
}

// A cache that cannot be read is made anew and never an error.
func TestSpoiltCache(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, p *person){
		"a byte changed": func(t *testing.T, p *person) {
			row := p.rows()[0]
			row.Data[len(row.Data)-1] ^= 1
			p.remember(row)
		},
		"a row of another wrap": func(t *testing.T, p *person) {
			rows := p.rows()
			p.remember(store.CachedMessage{WrapID: rows[0].WrapID, Data: rows[1].Data})
		},
		"a short row": func(t *testing.T, p *person) {
			p.remember(store.CachedMessage{WrapID: p.rows()[0].WrapID, Data: []byte("short")})
		},
		"the key is missing": func(t *testing.T, p *person) { p.keys.key = nil },
		"another key":        func(t *testing.T, p *person) { p.keys.key[0] ^= 1 },
		"the rows are missing": func(t *testing.T, p *person) {
			if err := p.store.MessageCache(p.public).Forget(patient(t)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			me := newPerson(t, commonRelay)
			me.write(newLocal(t, randomKey(t)), "one", "two")
			me.start().stop()
			if rows := len(me.rows()); rows != 2 {
				t.Fatalf("%d rows", rows)
			}
			spoil(t, me)
			me.app.count("nip44_decrypt")
			for _, want := range []int{4, 0} {
				run := me.start()
				run.awaitTexts("one", "two")
				run.stop()
				if decrypted := me.app.count("nip44_decrypt"); decrypted != want {
					t.Errorf("%d decryptions, want %d", decrypted, want)
				}
			}
		})
	}
}

func (p *person) remember(row store.CachedMessage) {
	p.t.Helper()
	if err := p.store.MessageCache(p.public).Remember(patient(p.t), []store.CachedMessage{row}); err != nil {
		p.t.Fatal(err)
	}
}

// Without a place for secrets or with a database that fails, messages come all the same.
func TestUnusableCache(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(p *person){
		"no place for the key": func(p *person) { p.keys.err = errors.New("there is no secrets backend") },
		"no database":          func(p *person) { _ = p.store.Close() },
	} {
		me := newPerson(t, commonRelay)
		spoil(me)
		me.write(newLocal(t, randomKey(t)), "one")
		for range 2 {
			run := me.start()
			run.awaitTexts("one")
			run.stop()
			if decrypted := me.app.count("nip44_decrypt"); decrypted != 2 {
				t.Errorf("%s: %d decryptions", name, decrypted)
			}
		}
	}
}

// No message may stand readable in the database or in the log.
func TestNothingReadableRemains(t *testing.T) {
	t.Parallel()
	const canary = "canary-4711"
	me, stranger := newPerson(t, commonRelay), newLocal(t, randomKey(t))
	broken := textDraft("", "", me.public)
	broken.Kind, broken.Content = market.KindStructuredMessage, `{"kind":30302,"created_at":1,"content":"`+canary+`"}`
	me.write(stranger, canary+" one")
	me.insert(
		wrapText(t, stranger, me.public, market.EncodeEmbeddedEvent(broken.Event(stranger.PublicKey(), 1))),
		wrapText(t, stranger, me.public, `{"kind":14,"created_at":"`+canary+`"}`),
		wrapText(t, stranger, me.public, canary),
	)
	run := me.start()
	run.send(canary+" two", canary, stranger.PublicKey())
	long := textDraft(strings.Repeat(canary, 5000), "", stranger.PublicKey())
	if _, err := run.Send(patient(t), long); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("a long message: %v", err)
	}
	run.stop()
	if rows := len(me.rows()); rows != 5 {
		t.Errorf("%d rows", rows)
	}
	files, err := filepath.Glob(me.database + "*")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte("canary")) {
			t.Errorf("%s holds a message", filepath.Base(file))
		}
	}
	if strings.Contains(me.journal.String(), "canary") {
		t.Error("the log holds a message")
	}
}

func FuzzOpenRow(f *testing.F) {
	for _, text := range []string{
		`{"sender":"a","rumor":{"pubkey":"a","kind":14,"created_at":1}}`, `{"sender":"a","rumor":{"pubkey":"b"}}`, `{}`, `[]`, ``,
		`{"sender":"a","rumor":{"pubkey":"a","kind":1327,"created_at":1,"content":"{}"}}`,
	} {
		f.Add([]byte(text), true)
	}
	f.Add([]byte("no ciphertext"), false)
	c := newCache(Config{Keys: &keyPlace{}}, "me")
	if _, err := c.openKey(context.Background()); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed {
			nonce := make([]byte, c.seal.NonceSize())
			data = c.seal.Seal(nonce, nonce, data, c.additional("wrap"))
		}
		rumor, err := c.openRow(store.CachedMessage{WrapID: "wrap", Data: data})
		if err != nil && !errors.Is(err, errUnreadable) || rumor != nil && rumor.Event.Sig != "" {
			t.Fatalf("%v, %v", rumor, err)
		}
	})
}
