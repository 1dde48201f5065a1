package conversation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/derivation"
	hostr "hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/seed"
)

// newBargain is a trade whose first offer is made, with the guest's key for it.
func newBargain(t *testing.T) (b *bargain, tradeKey string) {
	t.Helper()
	at := marketWithStays(t)
	b = &bargain{
		market: at, listing: at.Listings[0], guest: at.Guests[0], host: at.Listings[0].Host, escrow: at.Escrow,
		start: time.Date(2027, time.September, 6, 0, 0, 0, 0, time.UTC), end: time.Date(2027, time.September, 9, 0, 0, 0, 0, time.UTC),
	}
	b.listing.Prices = []seed.Price{{Units: 1000, Denomination: "BTC", Period: "day"}}
	accountSeed := strings.Repeat("ab", 32)
	parsed, err := derivation.ParseSeed(accountSeed)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := derivation.NewKeys(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if b.tradeID, err = keys.TradeID(3); err != nil {
		t.Fatal(err)
	}
	key, err := keys.Trade(3)
	if err != nil {
		t.Fatal(err)
	}
	backup, err := encrypt(b.guest.PrivateKey, b.guest.PublicKey, fmt.Sprintf(`{"v":1,"seed":%q}`, accountSeed))
	if err != nil {
		t.Fatal(err)
	}
	b.insert(t, b.guest, accountSeedKind, nil, backup)
	b.insert(t, b.host, escrowMethodKind, nostr.Tags{{"p", b.escrow.PublicKey}}, "{}")
	b.orders = []Event{b.offerOf(t, key)}
	return b, key.Hex()
}

func (b *bargain) insert(t *testing.T, author sandbox.Person, kind int, tags nostr.Tags, content string) {
	t.Helper()
	event, err := signed(author.PrivateKey, kind, nostr.Now(), tags, content)
	if err == nil {
		err = b.market.Relay.Insert(context.Background(), event)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// offerOf is the offer as the daemon would sign it.
func (b *bargain) offerOf(t *testing.T, key derivation.PrivateKey) Event {
	t.Helper()
	authorization := hostr.DraftTradeKeyAuthorization(hostr.TradeKeyTerms{
		Identity: b.guest.PublicKey, Participant: key.PublicKey(), Role: hostr.RoleBuyer, ListingAnchor: b.listing.Anchor, TradeID: b.tradeID,
	}, nostr.Now())
	if err := authorization.Sign(b.guest.PrivateKey); err != nil {
		t.Fatal(err)
	}
	participants, err := hostr.PlanParticipants([]hostr.PlannedParticipant{
		{Role: hostr.RoleSeller, Pubkey: b.host.PublicKey, Identity: b.host.PublicKey},
		{Role: hostr.RoleBuyer, Pubkey: key.PublicKey(), Identity: b.guest.PublicKey, Authorization: hostr.EncodeEmbeddedEvent(authorization)},
	}, func(reader, text string) (string, error) { return encrypt(key.Hex(), reader, text) })
	if err != nil {
		t.Fatal(err)
	}
	price := b.price(offeredPart)
	tags := append(nostr.Tags{{"a", b.listing.Anchor}, {"d", b.tradeID}}, participants...)
	offer, err := signed(key.Hex(), seed.OrderKind, nostr.Now(), tags, compact(Terms{
		Start: instant(b.start), End: instant(b.end), Stage: "negotiate", Quantity: 1, Recipient: key.PublicKey(),
		Amount: &TermsAmount{price.Amount(), price.Denomination, 8},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return newEvent(offer)
}

func TestTrades(t *testing.T) {
	t.Parallel()
	b, key := newBargain(t)
	t.Run("the paying program needs its trade", func(t *testing.T) { payingNeedsItsTrade(t, b) })
	t.Run("the paying program books", func(t *testing.T) { payingBooks(t, b, key) })
	t.Run("wrong trades are named", func(t *testing.T) { wrongTradesAreNamed(t, b) })
}

// payingBooks checks that what is published is a booking to the daemon, by terms and
// people.
func payingBooks(t *testing.T, b *bargain, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	event, err := payingProgram{b.market, b.guest, b.listing}.book(ctx, b.orders[0])
	if err != nil {
		t.Fatal(err)
	}
	order, err := hostr.DecodeOrder(&event)
	if err != nil || !hostr.VerifyOrder(order).Valid() || order.Stage != hostr.StageCommit {
		t.Fatalf("the booking: %v, %+v", err, hostr.VerifyOrder(order))
	}
	group, ok := hostr.NewOrderGroup([]hostr.Order{order})
	if !ok || group.EscrowPubkey() != b.escrow.PublicKey {
		t.Errorf("its escrow is %q", group.EscrowPubkey())
	}
	for reader, private := range map[string]string{b.host.PublicKey: b.host.PrivateKey, b.escrow.PublicKey: b.escrow.PrivateKey, event.PubKey: key} {
		opened := false
		for _, proof := range order.Proofs {
			if proof.Recipient != reader {
				continue
			}
			found, err := order.OpenProof(proof, func(_, author, payload string) (string, error) { return decrypt(private, author, payload) })
			opened = err == nil && found.Identity == b.guest.PublicKey
		}
		if !opened {
			t.Errorf("%s does not learn who the guest is", shortID(reader))
		}
	}
	stored, err := b.market.Relay.Query(ctx, nostr.Filter{Kinds: []int{seed.OrderKind, transitionKind}, Authors: []string{event.PubKey}})
	if err != nil || len(stored) != 2 {
		t.Fatalf("the relay holds %d events: %v", len(stored), err)
	}
	for i := range stored {
		if stored[i].Kind != transitionKind {
			continue
		}
		transition, err := hostr.DecodeOrderTransition(&stored[i])
		if err != nil || transition.CommitTermsHash != order.CommitHash() || transition.OrderID != event.ID {
			t.Errorf("the transition: %v, %+v", err, transition)
		}
		if chain := hostr.ResolveTransitions([]hostr.OrderTransition{transition}, hostr.RoleBuyer); chain.Failure != nil {
			t.Error(chain.Failure)
		}
	}
}

func payingNeedsItsTrade(t *testing.T, b *bargain) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	program := payingProgram{b.market, b.guest, b.listing}
	foreign := b.orders[0]
	foreign.Tags = nostr.Tags{{"d", strings.Repeat("cd", 32)}}
	if _, err := program.book(ctx, foreign); err == nil || !strings.Contains(err.Error(), "none of the guest's seed") {
		t.Errorf("a trade of somebody else: %v", err)
	}
	bare := b.orders[0]
	bare.Tags = nostr.Tags{{"d", b.tradeID}}
	if _, err := program.book(ctx, bare); err == nil || !strings.Contains(err.Error(), "does not hold the proof") {
		t.Errorf("an order without proofs: %v", err)
	}
	if err := publish(ctx, b.market.RelayURL, b.guest, nostr.Event{Kind: 1}); err == nil || !strings.Contains(err.Error(), "the relay refuses kind 1") {
		t.Errorf("an event that is none: %v", err)
	}
}

// wrongTradesAreNamed checks that what is right passes.
func wrongTradesAreNamed(t *testing.T, b *bargain) {
	for name, c := range map[string]struct {
		spoil func(*Event)
		want  string
	}{
		"right":  {func(*Event) {}, ""},
		"forged": {func(e *Event) { e.Content = strings.Replace(e.Content, "2100", "2101", 1) }, "signature is"},
		"kind":   {func(e *Event) { resign(t, e, func(event *nostr.Event) { event.Kind = 1 }) }, `kind is "1"`},
		"amount": {func(e *Event) {
			resign(t, e, func(event *nostr.Event) { event.Content = strings.Replace(event.Content, "2100", "2101", 1) })
		}, "amount is"},
		"no content": {func(e *Event) { resign(t, e, func(event *nostr.Event) { event.Content = "?" }) }, `stage is ""`},
		"trade":      {func(e *Event) { resign(t, e, func(event *nostr.Event) { event.Tags[1][1] = "another" }) }, "trade is"},
	} {
		order := b.orders[0]
		order.Tags = nostr.Tags{}
		for _, tag := range b.orders[0].Tags {
			order.Tags = append(order.Tags, append(nostr.Tag{}, tag...))
		}
		c.spoil(&order)
		checkDifference(t, "order: "+name, b.compareOrder(&order, "negotiate", offeredPart), c.want)
	}
	checkDifference(t, "no order", b.compareOrder(nil, "negotiate", offeredPart), "there is no order")

	another := b.orders[0]
	another.ID = "another"
	for name, c := range map[string]struct {
		got  []Event
		want string
	}{
		"right": {b.orders, ""}, "none": {nil, "0 orders instead of 1"}, "another": {[]Event{another}, "order 1 is another"},
	} {
		checkDifference(t, "orders: "+name, b.compareOrders(c.got), c.want)
	}

	for name, c := range map[string]struct{ old, replacement, want string }{
		"right":     {"", "", ""},
		"invalid":   {`"valid":true`, `"valid":false`, `valid is "false"`},
		"mode":      {`"mode":"trips"`, `"mode":"bookings"`, `mode is "bookings"`},
		"cancelled": {`"cancelled":false`, `"cancelled":true`, `cancelled is "true"`},
		"days":      {"2027-09-06", "2027-09-07", "start is"},
		"buyer":     {`"buyerPubkey":"`, `"buyerPubkey":"x`, "buyerPubkey is"},
		"stranger":  {`"buyer":{"pubkey":"`, `"buyer":{"pubkey":"x`, "the buyer is"},
		"no escrow": {`"escrow":"`, `"other":"`, "the escrow is"},
	} {
		var item TradeItem
		if err := json.Unmarshal([]byte(strings.Replace(b.tripText(), c.old, c.replacement, 1)), &item); err != nil {
			t.Fatal(err)
		}
		difference := b.compareTrade(item, "trips", false)
		if difference == "" {
			difference = b.compareRoles(item)
		}
		checkDifference(t, "trip: "+name, difference, c.want)
	}
}

func resign(t *testing.T, e *Event, change func(*nostr.Event)) {
	t.Helper()
	event := e.event()
	change(&event)
	if err := event.Sign(nostr.GeneratePrivateKey()); err != nil {
		t.Fatal(err)
	}
	*e = newEvent(event)
}

// tripText is the right answer about the trade.
func (b *bargain) tripText() string {
	person := func(p sandbox.Person) string {
		return fmt.Sprintf(`{"pubkey":%q,"name":%q}`, p.PublicKey, shownName(p))
	}
	return fmt.Sprintf(`{"found":true,"mode":"trips","tradeId":%q,"valid":true,
		"group":{"listingTitle":%q,"stage":"commit","cancelled":false,"active":true,"start":%q,"end":%q,"buyerPubkey":%q},
		"participants":{"roles":{"seller":%q,"buyer":%q,"escrow":%q},"profiles":{"seller":%s,"buyer":%s,"escrow":%s}}}`,
		b.tradeID, b.listing.Title, instant(b.start), instant(b.end), b.orders[0].PubKey,
		b.host.PublicKey, b.guest.PublicKey, b.escrow.PublicKey, person(b.host), person(b.guest), person(b.escrow))
}

// A step whose ground is gone says so instead of asking.
func TestStepsOfABrokenTradeAreLeftOut(t *testing.T) {
	t.Parallel()
	paper := &Paper{out: &bytes.Buffer{}, width: 80}
	b, went := &bargain{}, 0
	do := func(right bool) func(context.Context, *talk) bool {
		return func(context.Context, *talk) bool { went++; return right }
	}
	talking := &talk{paper: paper}
	for _, run := range []func(context.Context, *talk){b.first(do(true)), b.then(do(false)), b.then(do(true)), b.then(do(true))} {
		run(context.Background(), talking)
	}
	if went != 2 || len(talking.wrong) != 2 {
		t.Errorf("%d steps were done, wrong are %q", went, talking.wrong)
	}
}
