package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/seed"
	"hostr-daemon/internal/sandbox/signerapp"
)

const giftWrapKind = 1059

// trading has a guest and a host agree on a price, talk, book, bring the escrow in and
// part again: three accounts in one daemon, as under a bridge with three users.
func trading(m *sandbox.Market) []step {
	at := slices.IndexFunc(m.Listings, func(l sandbox.Listing) bool {
		return l.Active && l.AutoAccept && l.Negotiable && l.Prices[0].Period == "day"
	})
	if at < 0 {
		return nil
	}
	b := &bargain{
		market: m, listing: m.Listings[at], guest: guestWithProfile(m), host: m.Listings[at].Host, escrow: m.Escrow,
		start: time.Date(2027, time.September, 6, 0, 0, 0, 0, time.UTC), end: time.Date(2027, time.September, 9, 0, 0, 0, 0, time.UTC),
	}
	return []step{
		{
			"Three people sign in",
			"A guest with a signer app, a host and an escrow operator with their keys. One daemon serves them all, each with " +
				"connections and a memory of their own.",
			b.first(b.signIn),
		},
		{
			"Preview an offer",
			"The guest would like three nights for less than the listing says. The preview shows the offer, signed by a key that is " +
				"made for this stay alone, so that nobody who sees it later can tell who stays there.",
			b.then(b.previewOffer),
		},
		{
			"Send it",
			"Offers travel as private messages (gift wraps): the relay carries them and can read nothing but whom they are for.",
			b.then(b.offer),
		},
		{
			"The host looks for news",
			"hostr.updates holds everything that is new for an account: conversations, trips, bookings and reviews.",
			b.then(b.news),
		},
		{
			"The host asks for a little more",
			"A counter-offer carries the host's signed word that a booking at this price is welcome.",
			b.then(b.counter),
		},
		{
			"The guest agrees",
			"Agreeing keeps the host's word with the offer. Nothing is public yet, and nothing is booked.",
			b.then(b.agree),
		},
		{
			"They talk",
			"Messages about a stay go into its conversation, and what has come in since counts as unread.",
			b.then(b.talk),
		},
		{
			"The guest pays",
			"Paying is not built yet. Here the sandbox plays another program of the guest, which reads the guest's seed from the " +
				"relay and publishes the paid order. The market has no chain, so that nothing is really paid; both sides see the " +
				"booking all the same, as one that waits to be confirmed.",
			b.then(b.book),
		},
		{
			"Bring the escrow in",
			"Should guest and host disagree, one of them opens a conversation with the escrow, which all three can read.",
			b.then(b.involve),
		},
		{
			"The host cancels",
			"Once a stay is booked its cancellation is public, so that the days are free for others.",
			b.then(b.cancel),
		},
		{
			"Everybody signs out",
			"The keys leave this machine. What was said and booked stays on the relay, for the next sign-in.",
			b.signOut,
		},
	}
}

// bargain is a trade under way.
type bargain struct {
	market              *sandbox.Market
	listing             sandbox.Listing
	guest, host, escrow sandbox.Person
	phone               *signerapp.App // the guest's
	start, end          time.Time
	tradeID             string
	orders              []Event // those in the conversation so far
	broken              bool    // what comes next builds on what went wrong
}

// first and then make a step of something others build on; it tells whether they can.
func (b *bargain) first(do func(context.Context, *talk) bool) func(context.Context, *talk) {
	return func(ctx context.Context, t *talk) { b.broken = !do(ctx, t) }
}

func (b *bargain) then(do func(context.Context, *talk) bool) func(context.Context, *talk) {
	return func(ctx context.Context, t *talk) {
		if b.broken {
			t.bad("left out, since what it builds on went wrong")
			return
		}
		b.broken = !do(ctx, t)
	}
}

func (b *bargain) people() []sandbox.Person { return []sandbox.Person{b.guest, b.host, b.escrow} }

func (b *bargain) signIn(ctx context.Context, t *talk) bool {
	if b.phone = t.signInByPhone(ctx, b.guest); b.phone == nil {
		return false
	}
	t.paper.Detail("The requests of the other two hold their keys and are not shown.")
	if !t.signInByKey(ctx, b.host) || !t.signInByKey(ctx, b.escrow) {
		return false
	}
	for _, person := range b.people() {
		var found Updates
		envelope, ok := t.askQuietly(ctx, person.PublicKey, "hostr.updates", map[string]any{"limit": 50})
		if !ok || !t.data(envelope, &found) {
			return false
		}
		news := len(found.Threads) + found.TripCount + found.BookingCount
		t.check(news == 0, fmt.Sprintf("the %s has no conversations, trips or bookings yet", person.Role), fmt.Sprintf("%+v", found))
	}
	return true
}

// price is a part, in hundredths, of what the listing asks for the stay.
func (b *bargain) price(hundredths int64) seed.Price {
	nightly := b.listing.Prices[0]
	nights := int64(b.end.Sub(b.start) / (24 * time.Hour))
	return seed.Price{Units: nightly.Units * nights * hundredths / 100, Denomination: nightly.Denomination}
}

// The prices of this trade, in hundredths of the listing's.
const (
	offeredPart = 70
	agreedPart  = 85
)

// amountInput is a price as inputs have it.
func amountInput(price seed.Price) map[string]any {
	if price.Denomination == "BTC" {
		return map[string]any{"value": strconv.FormatInt(price.Units, 10), "currency": "BTC", "unit": "sats"}
	}
	return map[string]any{"value": price.Amount(), "currency": price.Denomination}
}

// inWords is a price for people.
func inWords(price seed.Price) string {
	var shown SummaryPrice
	shown.Amount.Value, shown.Amount.SmallestUnitValue = price.Amount(), strconv.FormatInt(price.Units, 10)
	shown.Amount.Denomination, shown.Amount.Decimals = price.Denomination, 6
	if price.Denomination == "BTC" {
		shown.Amount.Decimals = 8
	}
	return amountForPeople(shown)
}

func (b *bargain) offerInput() map[string]any {
	return map[string]any{
		"listingAnchor": b.listing.Anchor, "start": b.start.Format(time.RFC3339), "end": b.end.Format(time.RFC3339),
		"amount": amountInput(b.price(offeredPart)),
	}
}

func (b *bargain) previewOffer(ctx context.Context, t *talk) bool {
	t.paper.Detail(fmt.Sprintf("%s: %s for three nights, the guest offers %s", b.listing.Title, inWords(b.price(100)), inWords(b.price(offeredPart))))
	before := b.wraps(ctx, t)
	preview, ok := b.write(ctx, t, b.guest, "hostr.orders.negotiateOffer", b.offerInput(), true)
	if !ok {
		return false
	}
	t.check(preview.DryRun && preview.Delivery == "giftwrap" && preview.Listing.Title == b.listing.Title,
		"it is a preview, of an offer for this listing", fmt.Sprintf("dryRun %t, delivery %q, listing %q", preview.DryRun, preview.Delivery, preview.Listing.Title))
	b.tradeID = preview.TradeID
	difference := b.compareOrder(preview.Event, "negotiate", offeredPart)
	t.check(difference == "", fmt.Sprintf("it says what the guest offers: %s from %s to %s", inWords(b.price(offeredPart)),
		b.start.Format(time.DateOnly), b.end.Format(time.DateOnly)), difference)
	secret := preview.Event != nil && preview.Event.PubKey != b.guest.PublicKey
	t.check(secret, "its key does not tell who the guest is", "the guest's own key signed it")
	t.check(b.wraps(ctx, t) == before, "nothing was sent", "the relay has new messages")
	return difference == "" && len(b.tradeID) == 64
}

func (b *bargain) offer(ctx context.Context, t *talk) bool {
	before := b.wraps(ctx, t)
	sent, ok := b.send(ctx, t, b.guest, "hostr.orders.negotiateOffer", b.offerInput(), offeredPart)
	if !ok {
		return false
	}
	t.check(sent.TradeID == b.tradeID, "it is the trade that was previewed", sent.TradeID)
	// One copy is the host's, the other the guest's own.
	t.check(b.wraps(ctx, t) == before+2, "the relay has two messages more, for the host and for the guest's other devices",
		fmt.Sprintf("%d more", b.wraps(ctx, t)-before))
	t.check(len(b.public(ctx, t)) == 0, "nothing of it is public", "the relay has a public order")
	return true
}

func (b *bargain) news(ctx context.Context, t *talk) bool {
	thread, seen := b.conversation(ctx, t, b.host, b.guest)
	t.check(seen, "the offer is there, as it was sent", fmt.Sprintf("%d orders", len(thread.OrderRequests)))
	known := len(thread.Counterparties) == 1 && thread.Counterparties[0].Pubkey == b.guest.PublicKey && thread.Counterparties[0].Name == shownName(b.guest)
	t.check(known, "the host alone learns who asks: "+shownName(b.guest), fmt.Sprintf("%+v", thread.Counterparties))
	t.check(thread.UnreadCount == 1, "it is unread", strconv.Itoa(thread.UnreadCount))
	return seen
}

func (b *bargain) counter(ctx context.Context, t *talk) bool {
	input := map[string]any{"tradeId": b.tradeID, "amount": amountInput(b.price(agreedPart))}
	order, ok := b.answer(ctx, t, b.host, b.guest, "hostr.orders.negotiateOffer", input)
	if !ok {
		return false
	}
	t.check(order.PubKey == b.host.PublicKey, "the host signed it", order.PubKey)
	b.checkWord(t, order)
	return true
}

func (b *bargain) agree(ctx context.Context, t *talk) bool {
	order, ok := b.answer(ctx, t, b.guest, b.host, "hostr.orders.negotiateAccept", map[string]any{"tradeId": b.tradeID})
	if !ok {
		return false
	}
	t.check(order.PubKey == b.orders[0].PubKey, "the key of the first offer signed it", order.PubKey)
	b.checkWord(t, order)
	t.check(len(b.public(ctx, t)) == 0, "still nothing is public", "the relay has a public order")
	return true
}

// checkWord wants the host's signature over the terms in an order.
func (b *bargain) checkWord(t *talk, order Event) {
	var word nostr.Event
	err := word.UnmarshalJSON(order.terms().CommitAuthorization)
	t.check(err == nil && word.PubKey == b.host.PublicKey && genuine(word) && value(word, "d") == b.tradeID,
		"it holds the host's word for this price", fmt.Sprintf("%v", err))
}

// answer previews an order within the trade at the agreed price, sends it, and has the
// other side see it in the conversation.
func (b *bargain) answer(ctx context.Context, t *talk, from, to sandbox.Person, action string, input map[string]any) (Event, bool) {
	nextSecond(ctx, b.orders[len(b.orders)-1].CreatedAt)
	before := b.wraps(ctx, t)
	preview, ok := b.write(ctx, t, from, action, input, true)
	if !ok {
		return Event{}, false
	}
	difference := b.compareOrder(preview.Event, "negotiate", agreedPart)
	right := preview.DryRun && slices.Equal(preview.RecipientPubkeys, []string{to.PublicKey}) && b.wraps(ctx, t) == before
	t.check(difference == "" && right, fmt.Sprintf("the preview says %s, would go to the %s, and sent nothing", inWords(b.price(agreedPart)), to.Role),
		cmp.Or(difference, fmt.Sprintf("for %v", brief(preview.RecipientPubkeys))))
	sent, ok := b.send(ctx, t, from, action, input, agreedPart)
	if !ok {
		return Event{}, false
	}
	found, seen := sight(ctx, t, to.PublicKey, "hostr.thread.view", map[string]any{"tradeId": b.tradeID}, func(viewed Viewed) bool {
		return b.compareOrders(viewed.ThreadView.OrderRequests) == ""
	})
	t.check(seen, fmt.Sprintf("the %s sees it, after what was offered before", to.Role), b.compareOrders(found.ThreadView.OrderRequests))
	return *sent.Event, seen
}

// send sends an order of the trade and keeps it.
func (b *bargain) send(ctx context.Context, t *talk, from sandbox.Person, action string, input map[string]any, part int64) (Traded, bool) {
	sent, ok := b.write(ctx, t, from, action, input, false)
	if !ok {
		return sent, false
	}
	refused := slices.ContainsFunc(sent.RelayResponses, func(r Accepted) bool { return !r.BroadcastSuccessful })
	difference := b.compareOrder(sent.Event, "negotiate", part)
	right := !sent.DryRun && difference == "" && len(sent.RelayResponses) == 2 && !refused
	t.check(right, "it is sent, to the other side and to the sender's other devices", cmp.Or(difference, fmt.Sprintf("%+v", sent.RelayResponses)))
	if right {
		b.orders = append(b.orders, *sent.Event)
	}
	return sent, right
}

// write calls an action that previews or sends something of the trade.
func (b *bargain) write(ctx context.Context, t *talk, person sandbox.Person, action string, input map[string]any, dryRun bool) (Traded, bool) {
	var traded Traded
	return traded, t.write(ctx, person, action, input, dryRun, &traded)
}

// write calls an action with dryRun and reads its data.
func (t *talk) write(ctx context.Context, person sandbox.Person, action string, input map[string]any, dryRun bool, data any) bool {
	all := map[string]any{"dryRun": dryRun}
	for key, value := range input {
		all[key] = value
	}
	request, ok := t.send("callAction", ActionParams{Action: action, Pubkey: person.PublicKey, Input: all})
	if !ok {
		return false
	}
	envelope, ok := t.answered(ctx, request, action, dryRun)
	return ok && t.data(envelope, data)
}

// compareOrder returns what is wrong about an order of this trade.
func (b *bargain) compareOrder(order *Event, stage string, part int64) string {
	if order == nil {
		return "there is no order"
	}
	terms, price := order.terms(), b.price(part)
	amount := ""
	if terms.Amount != nil {
		amount = terms.Amount.Value + " " + terms.Amount.Denomination
	}
	for _, field := range []struct{ name, got, want string }{
		{"signature", fmt.Sprint(genuine(order.event())), "true"},
		{"kind", strconv.Itoa(order.Kind), strconv.Itoa(seed.OrderKind)},
		{"listing", value(order.event(), "a"), b.listing.Anchor},
		{"trade", value(order.event(), "d"), b.tradeID},
		{"stage", terms.Stage, stage},
		{"start", terms.Start, instant(b.start)},
		{"end", terms.End, instant(b.end)},
		{"amount", amount, price.Amount() + " " + price.Denomination},
	} {
		if field.got != field.want {
			return fmt.Sprintf("%s is %q instead of %q", field.name, shorten(field.got, 120), shorten(field.want, 120))
		}
	}
	return ""
}

// compareOrders wants exactly the orders of the conversation, oldest first.
func (b *bargain) compareOrders(got []Event) string {
	if len(got) != len(b.orders) {
		return fmt.Sprintf("%d orders instead of %d", len(got), len(b.orders))
	}
	for i, order := range b.orders {
		if got[i].ID != order.ID || got[i].Content != order.Content {
			return fmt.Sprintf("order %d is %s instead of %s", i+1, shortID(got[i].ID), shortID(order.ID))
		}
	}
	return ""
}

// conversation waits until somebody's conversation of the trade with the others holds
// all its orders.
func (b *bargain) conversation(ctx context.Context, t *talk, person sandbox.Person, others ...sandbox.Person) (Thread, bool) {
	var thread Thread
	_, seen := sight(ctx, t, person.PublicKey, "hostr.updates", map[string]any{}, func(found Updates) bool {
		thread = b.among(found.Threads, others...)
		return b.compareOrders(thread.OrderRequests) == ""
	})
	return thread, seen
}

// among returns the conversation of the trade with exactly these others.
func (b *bargain) among(threads []Thread, others ...sandbox.Person) Thread {
	for _, thread := range threads {
		if thread.Conversation == b.tradeID && slices.Equal(thread.CounterpartyPubkeys, pubkeysOf(others)) {
			return thread
		}
	}
	return Thread{}
}

// pubkeysOf are sorted.
func pubkeysOf(people []sandbox.Person) (pubkeys []string) {
	for _, person := range people {
		pubkeys = append(pubkeys, person.PublicKey)
	}
	slices.Sort(pubkeys)
	return pubkeys
}

// wraps counts the private messages on the relay.
func (b *bargain) wraps(ctx context.Context, t *talk) int {
	return len(b.onRelay(ctx, t, nostr.Filter{Kinds: []int{giftWrapKind}}))
}

// public are the public orders of the trade.
func (b *bargain) public(ctx context.Context, t *talk) []nostr.Event {
	return b.onRelay(ctx, t, nostr.Filter{Kinds: []int{seed.OrderKind}, Tags: nostr.TagMap{"d": {b.tradeID}}})
}

func (b *bargain) onRelay(ctx context.Context, t *talk, filter nostr.Filter) []nostr.Event {
	events, err := b.market.Relay.Query(ctx, filter)
	if err != nil {
		t.bad("the relay cannot be looked into: %v", err)
	}
	return events
}

func (b *bargain) signOut(ctx context.Context, t *talk) {
	if b.phone != nil {
		defer b.phone.Close()
	}
	for _, person := range b.people() {
		t.signOut(ctx, person)
	}
}
