package giftwrap_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
)

// sealed are the parts of a wrap by the account 3 to the account 2, each as it should
// be unless a test changes it.
type sealed struct {
	rumor func(rumor *nostr.Event)
	text  string // of the rumor, in place of the event
	seal  func(seal *nostr.Event)
	after func(seal *nostr.Event) // once it is signed
	inner string                  // of the seal, in place of the event
	wrap  func(wrap *nostr.Event)
}

const hidden = "private words"

func (s sealed) event(t testing.TB) *nostr.Event {
	t.Helper()
	author := account(t, "3").PublicKey()
	rumor := message(author, hidden)
	if s.rumor != nil {
		s.rumor(rumor)
	}
	if s.text == "" {
		s.text = market.EncodeEmbeddedEvent(rumor)
	}
	seal := nostr.Event{Kind: market.KindSeal, CreatedAt: now, Content: encrypt(t, "3", "2", s.text)}
	if s.seal != nil {
		s.seal(&seal)
	}
	stamped := signed(t, "3", seal)
	if s.after != nil {
		s.after(stamped)
	}
	if s.inner == "" {
		s.inner = market.EncodeEmbeddedEvent(stamped)
	}
	wrap := signed(t, "4", nostr.Event{Kind: market.KindGiftWrap, CreatedAt: now, Content: encrypt(t, "4", "2", s.inner)})
	if s.wrap != nil {
		s.wrap(wrap)
	}
	return wrap
}

func TestUnwrapRejects(t *testing.T) {
	t.Parallel()
	stranger := account(t, "5").PublicKey()
	otherSignature := signed(t, "3", nostr.Event{Kind: market.KindSeal, Content: "x"}).Sig
	breaks := strings.Repeat("\n", 132)
	for name, test := range map[string]sealed{
		"wrap of another kind":            {wrap: func(e *nostr.Event) { e.Kind = 1 }},
		"wrap of line breaks":             {wrap: func(e *nostr.Event) { e.Content = breaks }},
		"wrap without content":            {wrap: func(e *nostr.Event) { e.Content = "" }},
		"wrap too long":                   {wrap: func(e *nostr.Event) { e.Content = strings.Repeat("A", 87473) }},
		"wrap of another version":         {wrap: func(e *nostr.Event) { e.Content = "AQ" + e.Content[2:] }},
		"wrap that was changed":           {wrap: func(e *nostr.Event) { e.Content = e.Content[:90] + "AAAA" + e.Content[94:] }},
		"wrap by somebody else":           {wrap: func(e *nostr.Event) { e.PubKey = stranger }},
		"wrap for somebody else":          {wrap: func(e *nostr.Event) { e.Content = encrypt(t, "4", "5", "{}") }},
		"no seal in the wrap":             {inner: "hello"},
		"an empty object in the wrap":     {inner: "{}"},
		"message without seal":            {inner: market.EncodeEmbeddedEvent(message(stranger, hidden))},
		"seal of another kind":            {seal: func(e *nostr.Event) { e.Kind = 14 }},
		"seal with another kind's id":     {after: func(e *nostr.Event) { e.Kind = 14 }},
		"seal without signature":          {after: func(e *nostr.Event) { e.Sig = "" }},
		"seal with another signature":     {after: func(e *nostr.Event) { e.Sig = otherSignature }},
		"seal with a long signature":      {after: func(e *nostr.Event) { e.Sig += "00" }},
		"seal with upper-case digits":     {after: func(e *nostr.Event) { e.Sig = strings.ToUpper(e.Sig) }},
		"seal without id":                 {after: func(e *nostr.Event) { e.ID = "" }},
		"seal with another id":            {after: func(e *nostr.Event) { e.ID = strings.Repeat("0", 64) }},
		"seal by somebody else":           {after: func(e *nostr.Event) { e.PubKey = stranger }},
		"seal by nobody":                  {after: func(e *nostr.Event) { e.PubKey = "" }},
		"seal with a long author":         {after: func(e *nostr.Event) { e.PubKey += "00" }},
		"seal that was changed":           {after: func(e *nostr.Event) { e.CreatedAt++ }},
		"seal of line breaks":             {seal: func(e *nostr.Event) { e.Content = breaks }},
		"seal without content":            {seal: func(e *nostr.Event) { e.Content = "" }},
		"seal for somebody else":          {seal: func(e *nostr.Event) { e.Content = encrypt(t, "3", "5", "{}") }},
		"message of another author":       {rumor: func(e *nostr.Event) { e.PubKey = stranger }},
		"message without author":          {rumor: func(e *nostr.Event) { e.PubKey = "" }},
		"message of an upper-case author": {rumor: func(e *nostr.Event) { e.PubKey = strings.ToUpper(e.PubKey) }},
		"message that is text":            {text: "hello"},
		"message that is null":            {text: "null"},
		"message of a broken kind":        {text: `{"kind":"14","created_at":1,"pubkey":"` + stranger + `"}`},
	} {
		sender, rumor, err := giftwrap.Unwrap(context.Background(), account(t, "2"), test.event(t))
		if !errors.Is(err, giftwrap.ErrRejected) || sender != "" || rumor != nil || strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: %v from %q: %v", name, rumor, sender, err)
		}
	}
	if _, _, err := giftwrap.Unwrap(context.Background(), account(t, "2"), nil); !errors.Is(err, giftwrap.ErrRejected) {
		t.Errorf("of nothing: %v", err)
	}
}

func TestUnwrapTolerates(t *testing.T) {
	t.Parallel()
	author := account(t, "3").PublicKey()
	for name, test := range map[string]sealed{
		"right":             {},
		"another id":        {rumor: func(e *nostr.Event) { e.ID = strings.Repeat("0", 64) }},
		"a signature":       {rumor: func(e *nostr.Event) { e.Sig = "yes" }},
		"another order":     {text: ` {"sig":null,"content":"` + hidden + `","kind":14,"created_at":1780000000,"pubkey":"` + author + `"} `},
		"unknown keys":      {text: `{"x":{},"content":"` + hidden + `","tags":null,"kind":14,"created_at":1,"pubkey":"` + author + `"}`},
		"tags of any sort":  {text: `{"tags":[5,null,["p",5,null,{}]],"content":"` + hidden + `","kind":14,"created_at":1,"pubkey":"` + author + `"}`},
		"tags on the seal":  {seal: func(e *nostr.Event) { e.Tags = nostr.Tags{{"x", "y"}} }},
		"an unknown kind":   {rumor: func(e *nostr.Event) { e.Kind = 70000 }},
		"a time far ahead":  {rumor: func(e *nostr.Event) { e.CreatedAt = 9999999999 }},
		"wrap without tags": {wrap: func(e *nostr.Event) { e.Tags = nil }},
	} {
		sender, rumor, err := giftwrap.Unwrap(context.Background(), account(t, "2"), test.event(t))
		if err != nil || sender != author || rumor.PubKey != author || rumor.Content != hidden || !rumor.CheckID() || rumor.Sig != "" {
			t.Errorf("%s: %v from %q: %v", name, rumor, sender, err)
		}
	}
}

// TestUnwrapTellsPassingFailures: a signer that does not answer is no fault of the wrap.
func TestUnwrapTellsPassingFailures(t *testing.T) {
	t.Parallel()
	host, wrap := account(t, "2"), sealed{}.event(t)
	atSeal := scripted{Account: host, decrypt: func(peer, payload string) (string, error) {
		if peer != wrap.PubKey {
			return "", errOffline
		}
		return host.NIP44Decrypt(context.Background(), peer, payload)
	}}
	atWrap := scripted{Account: host, decrypt: func(string, string) (string, error) { return "", errOffline }}
	for name, me := range map[string]giftwrap.Account{"wrap": atWrap, "seal": atSeal} {
		if _, _, err := giftwrap.Unwrap(context.Background(), me, wrap); !errors.Is(err, errOffline) || errors.Is(err, giftwrap.ErrRejected) {
			t.Errorf("at the %s: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := giftwrap.Unwrap(ended, host, wrap); !errors.Is(err, context.Canceled) || errors.Is(err, giftwrap.ErrRejected) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNoPayloadNoQuestion: a signer, and perhaps a person, is not asked in vain.
func TestNoPayloadNoQuestion(t *testing.T) {
	t.Parallel()
	me := scripted{Account: account(t, "2"), decrypt: func(string, string) (string, error) {
		t.Error("the account was asked")
		return "", nil
	}}
	wrap := &nostr.Event{Kind: market.KindGiftWrap, Content: strings.Repeat("\r\n", 100)}
	if _, _, err := giftwrap.Unwrap(context.Background(), me, wrap); !errors.Is(err, giftwrap.ErrRejected) {
		t.Error(err)
	}
}

// FuzzUnwrap takes any texts for what an account decrypts.
func FuzzUnwrap(f *testing.F) {
	author := account(f, "3").PublicKey()
	payload := encrypt(f, "3", "2", "x")
	seal := signed(f, "3", nostr.Event{Kind: market.KindSeal, CreatedAt: now, Content: payload})
	f.Add(market.EncodeEmbeddedEvent(seal), market.EncodeEmbeddedEvent(message(author, "hello")))
	f.Add(market.EncodeEmbeddedEvent(seal), `{"kind":14,"created_at":1,"tags":[[null]],"pubkey":"`+author+`"}`)
	f.Add(`{"kind":13,"created_at":1}`, `{}`)
	f.Add(``, `null`)
	f.Fuzz(func(t *testing.T, outer, inner string) {
		calls := 0
		me := scripted{decrypt: func(string, string) (string, error) {
			calls++
			if calls == 1 {
				return outer, nil
			}
			return inner, nil
		}}
		wrap := &nostr.Event{Kind: market.KindGiftWrap, PubKey: author, Content: payload}
		sender, rumor, err := giftwrap.Unwrap(context.Background(), me, wrap)
		if err != nil {
			if !errors.Is(err, giftwrap.ErrRejected) || rumor != nil {
				t.Fatal(err)
			}
			return
		}
		if sender != author || rumor.PubKey != author || !rumor.CheckID() || rumor.Sig != "" {
			t.Fatalf("%v from %s", rumor, sender)
		}
		_, _ = market.ReadRumor(rumor)
	})
}

func BenchmarkUnwrap(b *testing.B) {
	ctx, guest, host := context.Background(), account(b, "1"), account(b, "2")
	wraps := make([]*nostr.Event, 500) // each with a key of its own, as real ones
	for i := range wraps {
		wrap, err := giftwrap.Wrap(ctx, guest, message(guest.PublicKey(), strings.Repeat("x", 200)), host.PublicKey(), now, rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		wraps[i] = wrap
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, _, err := giftwrap.Unwrap(ctx, host, wraps[i%len(wraps)]); err != nil {
			b.Fatal(err)
		}
	}
}
