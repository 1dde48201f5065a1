package giftwrap_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
)

const now = nostr.Timestamp(1780000000)

func message(author, content string) *nostr.Event {
	return market.MessageDraft{Kind: market.KindTextMessage, Content: content}.Event(author, now)
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	ctx, guest, host := context.Background(), account(t, "1"), account(t, "2")
	for _, content := range []string{"", "hello", "é\u2028\"\\\n\x01\U0001F3E0", strings.Repeat("x", 40000), `{"kind":1}`} {
		draft := market.MessageDraft{
			Kind: market.KindTextMessage, Content: content, Conversation: "t", Recipients: []string{host.PublicKey()},
		}
		rumor := draft.Event(guest.PublicKey(), now)
		for _, recipient := range []giftwrap.Account{host, guest} {
			wrap, err := giftwrap.Wrap(ctx, guest, rumor, recipient.PublicKey(), now, rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			checkWrap(t, wrap, recipient.PublicKey(), guest.PublicKey())
			sender, got, err := giftwrap.Unwrap(ctx, recipient, wrap)
			if err != nil || sender != guest.PublicKey() {
				t.Fatalf("from %s: %v", sender, err)
			}
			if diff := cmp.Diff(rumor, got); diff != "" {
				t.Errorf("%.20q: %s", content, diff)
			}
		}
	}
}

func checkWrap(t *testing.T, wrap *nostr.Event, recipient, author string) {
	t.Helper()
	if !market.IsSigned(wrap) || wrap.Kind != market.KindGiftWrap || wrap.PubKey == author || wrap.PubKey == recipient {
		t.Errorf("%v", wrap)
	}
	if diff := cmp.Diff(nostr.Tags{{"p", recipient}}, wrap.Tags); diff != "" {
		t.Error(diff)
	}
	if wrap.CreatedAt > now || wrap.CreatedAt <= now-172800 {
		t.Errorf("dated %d", wrap.CreatedAt)
	}
}

// TestWrapHides looks into two wraps of one message.
func TestWrapHides(t *testing.T) {
	t.Parallel()
	ctx, guest, host := context.Background(), account(t, "1"), account(t, "2")
	rumor := message(guest.PublicKey(), "hello")
	var wraps, seals [2]*nostr.Event
	for i := range wraps {
		var err error
		if wraps[i], err = giftwrap.Wrap(ctx, guest, rumor, host.PublicKey(), now, rand.Reader); err != nil {
			t.Fatal(err)
		}
		text, err := host.NIP44Decrypt(ctx, wraps[i].PubKey, wraps[i].Content)
		if err != nil {
			t.Fatal(err)
		}
		if seals[i], err = market.DecodeEmbeddedEvent(text); err != nil || text != market.EncodeEmbeddedEvent(seals[i]) {
			t.Fatalf("%v of %s", err, text)
		}
		seal := seals[i]
		if seal.Kind != market.KindSeal || len(seal.Tags) != 0 || seal.PubKey != guest.PublicKey() || !market.IsSigned(seal) ||
			seal.CreatedAt > now || seal.CreatedAt <= now-172800 {
			t.Errorf("%v", seal)
		}
		inner, err := host.NIP44Decrypt(ctx, seal.PubKey, seal.Content)
		if err != nil || inner != market.EncodeEmbeddedEvent(rumor) || !strings.HasSuffix(inner, `,"sig":null}`) {
			t.Errorf("%v, %s", err, inner)
		}
	}
	if wraps[0].PubKey == wraps[1].PubKey {
		t.Error("two wraps have the same key")
	}
	// Four draws of two days: that they are all equal cannot happen by chance.
	if at := wraps[0].CreatedAt; at == wraps[1].CreatedAt && at == seals[0].CreatedAt && at == seals[1].CreatedAt {
		t.Error("nothing is back-dated")
	}
}

// TestDates has the extremes of what is drawn.
func TestDates(t *testing.T) {
	t.Parallel()
	ctx, guest := context.Background(), account(t, "1")
	wrap, err := giftwrap.Wrap(ctx, guest, message(guest.PublicKey(), "x"), guest.PublicKey(), now, zeroesThen{6, rand.Reader})
	if err != nil || wrap.CreatedAt != now {
		t.Errorf("%v, %v", err, wrap)
	}
}

// zeroesThen gives so many bytes of zero to small reads, and real ones to others.
type zeroesThen struct {
	most int
	next interface {
		Read(into []byte) (int, error)
	}
}

func (z zeroesThen) Read(into []byte) (int, error) {
	if len(into) <= z.most {
		clear(into)
		return len(into), nil
	}
	return z.next.Read(into)
}

func TestWrapFails(t *testing.T) {
	t.Parallel()
	ctx, guest, host := context.Background(), account(t, "1"), account(t, "2").PublicKey()
	good := message(guest.PublicKey(), "private text")
	for name, test := range map[string]struct {
		account   giftwrap.Account
		rumor     *nostr.Event
		recipient string
		random    interface {
			Read(into []byte) (int, error)
		}
		want error
	}{
		"another's message": {guest, message(host, "private text"), host, rand.Reader, nil},
		"too large":         {guest, message(guest.PublicKey(), strings.Repeat("x", 40961)), host, rand.Reader, giftwrap.ErrTooLarge},
		"no recipient":      {guest, good, "", rand.Reader, nil},
		"no key":            {guest, good, strings.Repeat("f", 64), rand.Reader, nil},
		"no encryption":     {scripted{Account: guest, encrypt: errOffline}, good, host, rand.Reader, errOffline},
		"no signature":      {scripted{Account: guest, sign: errOffline}, good, host, rand.Reader, errOffline},
		"no randomness":     {guest, good, host, bytes.NewReader(nil), nil},
		"no more for a key": {guest, good, host, bytes.NewReader(make([]byte, 6)), nil},
	} {
		wrap, err := giftwrap.Wrap(ctx, test.account, test.rumor, test.recipient, now, test.random)
		if err == nil || wrap != nil || test.want != nil && !errors.Is(err, test.want) || strings.Contains(err.Error(), "private text") {
			t.Errorf("%s: %v, %v", name, wrap, err)
		}
	}
}

func TestCheckSizeCountsTheWholeMessage(t *testing.T) {
	t.Parallel()
	guest := account(t, "1")
	for bytes, fits := range map[int]bool{giftwrap.MaxRumor: true, giftwrap.MaxRumor + 1: false} {
		rumor := rumorOfSize(t, guest.PublicKey(), bytes)
		if err := giftwrap.CheckSize(rumor); (err == nil) != fits || !fits && !errors.Is(err, giftwrap.ErrTooLarge) {
			t.Errorf("%d bytes: %v", bytes, err)
		}
		_, err := giftwrap.Wrap(context.Background(), guest, rumor, guest.PublicKey(), now, rand.Reader)
		if (err == nil) != fits {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
}

func rumorOfSize(t *testing.T, author string, bytes int) *nostr.Event {
	t.Helper()
	empty := len(market.EncodeEmbeddedEvent(message(author, "")))
	rumor := message(author, strings.Repeat("x", bytes-empty))
	if got := len(market.EncodeEmbeddedEvent(rumor)); got != bytes {
		t.Fatalf("%d bytes instead of %d", got, bytes)
	}
	return rumor
}

// TestSizes computes the table of spec 60 §3.6 anew.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, row := range readVectors(t).Sizes {
		seal := signed(t, "1", nostr.Event{
			Kind: market.KindSeal, CreatedAt: now, Content: encrypt(t, "1", "2", strings.Repeat("x", row.RumorBytes)),
		})
		text := market.EncodeEmbeddedEvent(seal)
		if len(seal.Content) != row.SealContentChars || len(text) != row.SealJSONBytes {
			t.Errorf("%d bytes: %d in a seal of %d", row.RumorBytes, len(seal.Content), len(text))
		}
		if fits := row.WrapContentChars != nil; fits != (row.RumorBytes <= giftwrap.MaxRumor) || fits != (len(text) <= 65535) {
			t.Errorf("%d bytes: a seal of %d", row.RumorBytes, len(text))
		} else if fits && len(encrypt(t, "3", "2", text)) != *row.WrapContentChars {
			t.Errorf("%d bytes: not %d in the wrap", row.RumorBytes, *row.WrapContentChars)
		}
	}
}

func BenchmarkWrap(b *testing.B) {
	ctx, guest, host := context.Background(), account(b, "1"), account(b, "2").PublicKey()
	rumor := message(guest.PublicKey(), strings.Repeat("x", 200))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := giftwrap.Wrap(ctx, guest, rumor, host, now, rand.Reader); err != nil {
			b.Fatal(err)
		}
	}
}
