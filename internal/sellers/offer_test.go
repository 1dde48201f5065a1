package sellers

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/boltz"
	"hostr-daemon/internal/environment"
)

const (
	tBTC = "0x948b3c65b89df0b4894abe91e6d02fe579834f8f"
	usdt = "0x712516e61c8b383df4a63cfe83d7701bce54b03e"
	zero = "0x0000000000000000000000000000000000000000"
)

// claim is the i tag of the vectors' account.
var claim = nostr.Tag{"i", "evm:address:" + vectorAddress, "eip191:" + vectorProof}

func testOffer() offer {
	return offer{
		author: vectorPubkey, escrows: []string{escrowPubkey}, hashes: []string{codeHash},
		forms:   []paymentForm{{"BTC", "412346:" + tBTC, "hostr", true}, {"USD", "412346:" + usdt, "hostr", true}},
		address: vectorAddress, proof: vectorProof,
	}
}

// lines reads tags written as lines of words.
func lines(written string) nostr.Tags {
	tags := nostr.Tags{}
	for line := range strings.SplitSeq(strings.TrimSpace(written), "\n") {
		if words := strings.Fields(line); len(words) > 0 {
			tags = append(tags, nostr.Tag(words))
		}
	}
	return tags
}

func TestComposeTheFirst(t *testing.T) {
	t.Parallel()
	tags, changed := testOffer().compose(nil)
	want := `p ` + escrowPubkey + `
c ` + codeHash + `
o BTC 412346:` + tBTC + ` hostr
o USD 412346:` + usdt + ` hostr
` + strings.Join(claim, " ") + "\n"
	if diff := cmp.Diff(want, text(tags)); diff != "" || !changed {
		t.Errorf("changed %t, tags (-want +got):\n%s", changed, diff)
	}
}

func TestCompose(t *testing.T) {
	t.Parallel()
	const p, c = "p " + escrowPubkey, "c " + codeHash
	const btc, usd = "o BTC 412346:" + tBTC + " hostr", "o USD 412346:" + usdt + " hostr"
	i := strings.Join(claim, " ")
	whole := join(p, c, btc, usd, i)
	const foreign, bare = "o EUR 1:0xAbCd other", "o BTC 412346:" + tBTC
	for _, test := range []struct {
		name    string
		there   string
		offered func(*offer)
		// want is empty where nothing changes.
		want string
	}{
		{"the same", whole, nil, ""},
		{"the same in another order", join(i, usd, btc, c, p), nil, ""},
		{"upper case escrow and hash", join("p "+strings.ToUpper(escrowPubkey), "c "+strings.ToUpper(codeHash), btc, usd, i), nil, ""},
		{"token without app in other letters", join(p, c, "o BTC 412346:"+strings.ToUpper(tBTC), usd, i), nil,
			join(p, c, btc, usd, i)},
		{"token address in other letters", join(p, c, "o BTC 412346:0X"+strings.ToUpper(tBTC[2:])+" hostr", usd, i), nil, ""},
		{"a form twice", join(p, c, btc, btc, usd, i), nil, ""},
		{"escrow is missing", join(c, btc, usd, i), nil, join(c, p, btc, usd, i)},
		{"another escrow stays", join("p other", c, btc, usd, i), nil, join("p other", c, p, btc, usd, i)},
		{"hash is missing", join(p, "c 00", btc, usd, i), nil, join(p, "c 00", c, btc, usd, i)},
		{"no hash is known", join(p, btc, usd, i), func(o *offer) { o.hashes = nil }, ""},
		{"form is missing", join(p, c, btc, i), nil, join(p, c, btc, usd, i)},
		{"form of ours is no longer offered", join(p, c, btc, usd, "o ETH 1:0x1 hostr", i), nil, whole},
		{"form without app", join(p, c, bare, usd, i), nil, join(p, c, btc, usd, i)},
		{"foreign form stays", join(p, c, foreign, btc, usd, i), nil, ""},
		{"foreign form stays in front", join(p, c, btc, foreign, i), nil, join(p, c, foreign, btc, usd, i)},
		{"nothing is fresh", join(p, c, btc, foreign, i), func(o *offer) { o.forms = nil }, ""},
		{"nothing is fresh and one has no app", join(p, c, bare, btc, foreign, i), func(o *offer) { o.forms = nil }, join(p, c, btc, foreign, i)},
		{"swaps unknown", join(p, c, btc, i), func(o *offer) { o.forms, o.swapsUnknown = o.forms[1:], true }, ""},
		{"swaps unknown, also a form without app stays", join(p, bare, btc, i), func(o *offer) { o.forms, o.swapsUnknown = o.forms[1:], true },
			join(p, c, bare, btc, i)},
		{"swaps unknown and none is ours", join(p, c, foreign, i), func(o *offer) { o.forms, o.swapsUnknown = o.forms[1:], true },
			join(p, c, foreign, usd, i)},
		{"address is missing", join(p, c, btc, usd), nil, whole},
		{"address in other letters", join(p, c, btc, usd, "i evm:address:"+strings.ToLower(vectorAddress)+" "+claim[2]), nil, whole}, // its proof is of other letters
		{"another address", join(p, c, btc, usd, "i evm:address:0x1111111111111111111111111111111111111111 "+claim[2]), nil, whole},
		{"no proof", join(p, c, btc, usd, "i evm:address:"+vectorAddress), nil, whole},
		{"wrong proof", join(p, c, btc, usd, "i evm:address:"+vectorAddress+" eip191:0x"+strings.Repeat("11", 64)+"1b"), nil, whole},
		{"proof without prefixes", join(p, c, btc, usd, "i evm:address:"+vectorAddress+" "+vectorProof[2:]), nil, ""},
		{"the last address counts", join(p, c, btc, usd, i, "i evm:address:0x11"), nil, whole},
		{"identities of others stay", join("i github:someone proof", p, c, btc, usd), nil, join("i github:someone proof", p, c, btc, usd, i)},
		{"tags nobody knows stay", join("x y z", p, c, btc, "alt text"), nil, join("x y z", p, c, "alt text", btc, usd, i)},
		{"odd tags", join("o", "o BTC", "p", "c", "i", p, c, btc, usd, i), nil, ""},
		{"odd forms go with the next change", join("o", "o BTC", "p", p, c, btc, i), nil, join("p", p, c, btc, usd, i)},
	} {
		offered := testOffer()
		if test.offered != nil {
			test.offered(&offered)
		}
		current := &nostr.Event{PubKey: vectorPubkey, Tags: lines(test.there)}
		before := text(current.Tags)
		tags, changed := offered.compose(current)
		if changed != (test.want != "") {
			t.Errorf("%s: changed %t", test.name, changed)
		}
		if diff := cmp.Diff(test.want, text(tags)); changed && diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if text(current.Tags) != before {
			t.Errorf("%s: the event in force was changed", test.name)
		}
		if _, again := offered.compose(&nostr.Event{PubKey: vectorPubkey, Tags: tags}); again {
			t.Errorf("%s: what was composed would be composed again", test.name)
		}
	}
}

func join(tags ...string) string { return strings.Join(tags, "\n") + "\n" }

func TestPaymentForms(t *testing.T) {
	t.Parallel()
	facts, err := environment.Resolve("development")
	if err != nil {
		t.Fatal(err)
	}
	swap := func(chainID int64, tokens ...string) boltz.Chain {
		chain := boltz.Chain{ChainID: chainID}
		for _, token := range tokens {
			chain.Tokens = append(chain.Tokens, boltz.Token{Address: token})
		}
		return chain
	}
	const eth, rbtc = "o ETH 412346:" + zero + " hostr", "o BTC 33:" + zero + " hostr"
	const btc, usd = "o BTC 412346:" + tBTC + " hostr", "o USD 412346:" + usdt + " hostr"
	for _, test := range []struct {
		name   string
		chains []environment.Chain
		swaps  []boltz.Chain
		want   string
	}{
		{"no swaps", facts.EVM.Chains, nil, join(usd)},
		{"all", facts.EVM.Chains, []boltz.Chain{swap(33), swap(412346, strings.ToUpper(tBTC))}, join(eth, btc, usd, rbtc)},
		{"other tokens", facts.EVM.Chains, []boltz.Chain{swap(412346, usdt)}, join(eth, usd)},
		{"other chains", facts.EVM.Chains, []boltz.Chain{swap(42161, tBTC)}, join(usd)},
		{"no chains", nil, []boltz.Chain{swap(412346, tBTC)}, ""},
	} {
		var tags nostr.Tags
		for _, form := range paymentForms(test.chains, test.swaps) {
			tags = append(tags, form.tag())
		}
		if diff := cmp.Diff(test.want, text(tags)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func FuzzCompose(f *testing.F) {
	for _, seed := range []string{
		`[["p","a"],["c","b"],["o","BTC","1:0xAB","hostr"],["o","EUR","x"],["i","evm:address:0x1","eip191:0x00"]]`,
		`[["o"],["i"],[],["p"],["i","evm:address:"],["o","BTC","1:0x1",""],["o","BTC",":0X1","hostr","more"]]`, `[]`,
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, written string, swapsUnknown bool) {
		var tags nostr.Tags
		if json.Unmarshal([]byte(written), &tags) != nil {
			t.Skip()
		}
		offered := testOffer()
		offered.swapsUnknown = swapsUnknown
		composed, changed := offered.compose(&nostr.Event{PubKey: vectorPubkey, Tags: tags})
		if !changed {
			composed = tags
		}
		read := readMethod(&nostr.Event{PubKey: vectorPubkey, Tags: composed})
		if len(absent(offered.escrows, read.escrows))+len(absent(offered.hashes, read.hashes)) > 0 || !read.isProved() {
			t.Fatalf("the configuration lacks something: %v", composed)
		}
		for _, tag := range tags {
			if len(tag) > 0 && tag[0] != "o" && !isAddressClaim(tag) && !strings.Contains(text(composed), text(nostr.Tags{tag})) {
				t.Fatalf("%q got lost", tag)
			}
			if form, ok := readForm(tag); ok && form.isForeign() && !strings.Contains(text(composed), text(nostr.Tags{form.tag()})) {
				t.Fatalf("the form %q got lost", tag)
			}
		}
		if _, again := offered.compose(&nostr.Event{PubKey: vectorPubkey, Tags: composed}); again {
			t.Fatalf("what was composed would be composed again: %v", composed)
		}
	})
}

func BenchmarkCompose(b *testing.B) {
	offered := testOffer()
	tags, _ := offered.compose(nil)
	current := &nostr.Event{PubKey: vectorPubkey, Tags: tags}
	for b.Loop() {
		offered.compose(current)
	}
}
