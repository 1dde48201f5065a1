package orders

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

// fakePeople know one relay hint; who is not known does not answer in time.
type fakePeople struct {
	People
	known string
	hint  string

	mu    sync.Mutex
	asked []string
}

func (p *fakePeople) RelayHint(ctx context.Context, pubkey string) string {
	p.mu.Lock()
	p.asked = append(p.asked, pubkey)
	p.mu.Unlock()
	if pubkey != p.known {
		<-ctx.Done()
		return ""
	}
	return p.hint
}

func TestRelayHints(t *testing.T) {
	t.Parallel()
	seller, trade, escrow := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	people := &fakePeople{known: seller.public, hint: "wss://relay.example"}
	run := seller.startWith(func(config *Config) { config.People = people })
	run.limits.hint = 50 * time.Millisecond
	tags, err := run.plan(patient(t), seller.local, market.TradeParties{Seller: seller.public, Buyer: trade.public, Escrow: escrow.public}, "", "trade")
	if err != nil {
		t.Fatal(err)
	}
	want := nostr.Tags{{"p", seller.public, "wss://relay.example", "seller"}, {"p", trade.public, "", "buyer"}, {"p", escrow.public, "", "escrow"}}
	if jsonOf(t, tags) != jsonOf(t, want) || slices.Contains(people.asked, trade.public) {
		t.Errorf("tags %v after asking for %v", tags, people.asked)
	}
}

// A guest whose key is on a phone is asked for one signature of an offer, and for none
// of a cancellation.
func TestGuestWithSignerApp(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	app := newPhone(t, guest)
	run := guest.start()
	if _, err := run.FirstOffer(patient(t), at.request(true)); err != nil {
		t.Fatal(err)
	}
	if count := signed(t, app, market.KindTradeKeyAuthorization, market.KindOrder); count != 1 {
		t.Errorf("%d signatures for a preview", count)
	}
	offer := run.begin(at, nil).Order
	if _, err := run.Counter(patient(t), CounterRequest{TradeID: offer.TradeID, Amount: sats(1), DryRun: true, Wait: patience}); err != nil {
		t.Fatal(err)
	}
	if count := signed(t, app, market.KindTradeKeyAuthorization); count != 3 {
		t.Errorf("%d authorizations for two offers and a counter offer", count)
	}
	if _, err := run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, DryRun: true, Wait: patience}); err != nil {
		t.Fatal(err)
	}
	if count := signed(t, app, market.KindTradeKeyAuthorization, market.KindOrder); count != 3 {
		t.Errorf("%d signatures after the preview of a cancellation", count)
	}
}
