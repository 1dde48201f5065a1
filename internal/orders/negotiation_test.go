package orders

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/signer"
)

// A guest offers less, the host agrees, the guest accepts in turn: the host's word
// stays in the newest order.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host, nostr.Tag{"negotiable", "true"})
	guestRun, hostRun := guest.start(), host.start()
	offer := guestRun.begin(at, sats(150_000)).Order
	hostRun.awaitRequests(offer.TradeID, 1)
	before := guest.messages() + host.messages()
	preview, err := hostRun.Counter(patient(t), CounterRequest{TradeID: offer.TradeID, Accept: true, DryRun: true, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{guest.public}, preview.Recipients); diff != "" || preview.Receipts != nil || guest.messages()+host.messages() != before {
		t.Errorf("recipients %s, receipts %v, %d more messages", diff, preview.Receipts, guest.messages()+host.messages()-before)
	}
	accepted := hostRun.accepted(offer.TradeID)
	order := accepted.Order
	if err := order.CheckCommitAuthorization(); err != nil || !market.IsSigned(order.Event) || order.Event.PubKey != host.public {
		t.Errorf("the host's order by %s: %v", order.Event.PubKey, err)
	}
	wantTags := nostr.Tags{
		{"a", at.anchor.String()}, {"d", offer.TradeID}, {"p", host.public, "", "seller"}, {"p", offer.Event.PubKey, "", "buyer"},
		order.Event.Tags[len(order.Event.Tags)-1],
	}
	if diff := cmp.Diff(wantTags, order.Event.Tags); diff != "" || order.Event.Tags[4][0] != "published_at" {
		t.Errorf("the host's tags: %s", diff)
	}
	if len(accepted.Receipts) != 2 || order.Stage != market.StageNegotiate || order.Recipient != offer.Recipient || order.Amount.Text() != "0.00150000" {
		t.Errorf("receipts %v of order %s", accepted.Receipts, order.Event.Content)
	}

	thread := guestRun.awaitRequests(offer.TradeID, 2)
	listing, err := market.DecodeListing(at.listing)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := market.NegotiationPolicy(thread, listing, market.RoleBuyer, guest.public)
	if err != nil || !policy.May(market.NegotiationPay) {
		t.Errorf("the guest may %v, %v", policy.Actions, err)
	}
	inTurn, err := guestRun.Counter(patient(t), CounterRequest{TradeID: offer.TradeID, Accept: true, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	if err := inTurn.Order.CheckCommitAuthorization(); err != nil || inTurn.Order.Event.PubKey != offer.Event.PubKey || len(inTurn.Order.Proofs) != 2 {
		t.Errorf("the guest's order by %s with %d proofs: %v", inTurn.Order.Event.PubKey, len(inTurn.Order.Proofs), err)
	}
	if expected, err := inTurn.Order.ExpectedAmount(listing); err != nil || expected.Amount.Text() != "0.00150000" {
		t.Errorf("%v is expected, %v", expected, err)
	}
	// Another amount is not what the host has signed.
	other, err := guestRun.Counter(patient(t), CounterRequest{TradeID: offer.TradeID, Amount: sats(140_000), Wait: patience})
	if err != nil || other.Order.CommitAuthorization != nil || other.Order.Amount.Text() != "0.00140000" {
		t.Errorf("the guest's next order is %s, %v", other.Order.Event.Content, err)
	}
	if public := guest.of(market.KindOrder, offer.TradeID); len(public) != 0 {
		t.Errorf("%d orders are public", len(public))
	}
}

// Everything needed is on the relay: another process of either side goes on.
func TestNegotiationAfterARestart(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	first := guest.start()
	offer := first.begin(at, sats(150_000)).Order
	first.stop()
	hostRun := host.start()
	hostRun.accepted(offer.TradeID)
	hostRun.stop()
	second := guest.start()
	if requests := second.awaitRequests(offer.TradeID, 2); requests[0].Event.ID != offer.Event.ID {
		t.Errorf("the first order is %s, want %s", requests[0].Event.ID, offer.Event.ID)
	}
	sent, err := second.Counter(patient(t), CounterRequest{TradeID: offer.TradeID, Accept: true, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	if sent.Order.Event.PubKey != offer.Event.PubKey || sent.Order.CommitAuthorization == nil {
		t.Errorf("the order by %s, want %s, authorization %v", sent.Order.Event.PubKey, offer.Event.PubKey, sent.Order.CommitAuthorization)
	}
	if next, err := second.FirstOffer(patient(t), at.request(true)); err != nil || next.Order.TradeID == offer.TradeID {
		t.Errorf("the next trade is %s again, %v", next.Order.TradeID, err)
	}
}

func TestCounterWithoutWhatItTakes(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	run := guest.start()
	offer := run.begin(at, nil).Order
	gone := newPerson(t, commonRelay)
	goneAt := gone.offers(gone)
	orphan := run.begin(goneAt, nil).Order
	gone.deletes(goneAt.listing)
	tests := []struct {
		name, tradeID string
		accept        bool
		code          fault.Code
		reason        string
		details       string
		anchor        string
	}{
		{"an unknown trade", "nothing", true, fault.NotFound, "private_negotiation_not_found", `{"tradeId":"nothing"}`, ""},
		{"no listing", orphan.TradeID, true, fault.ListingNotFound, "listing_not_found", `{"anchor":"` + orphan.ListingAnchor + `"}`, orphan.ListingAnchor},
		{"no amount", offer.TradeID, false, fault.AmountRequired, "amount_required", `null`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := run.Counter(patient(t), CounterRequest{TradeID: test.tradeID, Accept: test.accept, Wait: patience})
			failure := coded(t, err, test.code)
			var missing *Missing
			if !errors.As(err, &missing) || missing.Reason != test.reason || missing.Anchor != test.anchor || missing.Message() == "" {
				t.Errorf("missing is %+v", missing)
			}
			if got := jsonOf(t, failure.Details); got != test.details {
				t.Errorf("details %s, want %s", got, test.details)
			}
		})
	}
}

// deletes has the relay forget an event of the person.
func (p *person) deletes(event *nostr.Event) {
	p.t.Helper()
	p.publish(p.local, &nostr.Event{Kind: nostr.KindDeletion, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"e", event.ID}}})
}

// An offer that a stranger writes in the thread's name does not count.
func TestStrangersDoNotNegotiate(t *testing.T) {
	t.Parallel()
	host, guest, stranger := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	run := guest.start()
	offer := run.begin(at, nil).Order
	// The host's offer as anybody may write it: unsigned children are read.
	content := offer.OrderContent
	content.Amount = sats(1)
	child := &nostr.Event{PubKey: host.public, Kind: market.KindOrder, CreatedAt: nostr.Now() + 60, Tags: offer.Event.Tags, Content: content.Encode()}
	child.ID = child.GetID()
	strange := stranger.start()
	for _, tradeID := range []string{offer.TradeID, "elsewhere"} {
		if _, err := strange.inbox.Send(patient(t), market.NewOrderMessage(child, tradeID, []string{guest.public})); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the stranger's message has come", func() (came bool) {
		run.inbox.Read(func(threads *market.Threads) { came = threads.OfTrade("elsewhere") != nil })
		return came
	})
	sent, err := run.Counter(patient(t), CounterRequest{TradeID: offer.TradeID, Accept: true, DryRun: true, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	if sent.Order.Amount.Text() != "0.00200000" || slices.Contains(sent.Recipients, stranger.public) {
		t.Errorf("accepted %s, for %v", sent.Order.Amount.Text(), sent.Recipients)
	}
	// Who takes no part has no key.
	strangerTrade := strange.begin(at, nil).Order
	host.start().accepted(strangerTrade.TradeID)
	if _, err := run.Counter(patient(t), CounterRequest{TradeID: strangerTrade.TradeID, Accept: true, DryRun: true, Wait: time.Millisecond}); err == nil {
		t.Error("somebody else's negotiation was accepted")
	}
}

// bids has a stranger make an offer to the host under the id of somebody else's trade.
func (r *process) bids(at place, order market.Order) {
	r.t.Helper()
	bid := market.FirstOffer{
		ListingAnchor: at.anchor.String(), TradeID: order.TradeID, TradeKey: r.public, Start: day(5), End: day(7), Amount: *sats(1),
		Participants: nostr.Tags{{"p", at.anchor.PubKey, "", "seller"}, {"p", r.public, "", "buyer"}},
	}.Event(nostr.Now())
	if err := r.local.SignEvent(patient(r.t), bid); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.inbox.Send(patient(r.t), market.NewOrderMessage(bid, order.TradeID, []string{at.anchor.PubKey})); err != nil {
		r.t.Fatal(err)
	}
}

// awaitWord waits until somebody has written about a trade.
func (r *process) awaitWord(tradeID, from string) {
	r.t.Helper()
	anchor := market.ThreadAnchor([]string{r.public, from}, tradeID)
	eventually(r.t, "there is a word about the trade", func() (came bool) {
		r.inbox.Read(func(threads *market.Threads) { came = threads.ByAnchor(anchor) != nil })
		return came
	})
}

// A trade id is public once the trade is committed: a stranger may bid under it before
// the host has answered.
func TestStrangersDoNotOutbid(t *testing.T) {
	t.Parallel()
	host, guest, stranger := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	escrow := newPerson(t, commonRelay)
	at := host.offers(escrow)
	guestRun, hostRun, strange := guest.start(), host.start(), stranger.start()
	offer := guestRun.begin(at, nil).Order
	hostRun.awaitRequests(offer.TradeID, 1)
	strange.bids(at, offer)
	hostRun.awaitWord(offer.TradeID, stranger.public)
	accept := CounterRequest{TradeID: offer.TradeID, Accept: true, DryRun: true, Wait: patience}
	if _, err := hostRun.Counter(patient(t), accept); !fault.Is(err, fault.UnexpectedError) {
		t.Errorf("one of two bids was accepted: %v", err)
	}
	guestRun.commit(at, offer, escrow)
	eventually(t, "the host sees the guest", func() bool {
		bookings, err := hostRun.List(patient(t), market.Bookings, 50, patience)
		if err != nil {
			t.Fatal(err)
		}
		return len(bookings.Items) == 1 && bookings.Items[0].Participants.Roles.Buyer == guest.public
	})
	for name, run := range map[string]*process{"at once": hostRun, "after a restart": host.start()} {
		sent, err := run.Counter(patient(t), accept)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{guest.public}, sent.Recipients); diff != "" || sent.Order.Amount.Text() != "0.00200000" {
			t.Errorf("%s: accepted %s, recipients %s", name, sent.Order.Amount.Text(), diff)
		}
	}
	// What the host has answered is settled without the public orders.
	request := at.request(false)
	request.Start, request.End = day(10), day(12)
	begun, err := guestRun.FirstOffer(patient(t), request)
	if err != nil {
		t.Fatal(err)
	}
	other := begun.Order
	hostRun.accepted(other.TradeID)
	strange.bids(at, other)
	hostRun.awaitWord(other.TradeID, stranger.public)
	cancelled, err := hostRun.Cancel(patient(t), CancelRequest{TradeID: other.TradeID, DryRun: true, Wait: patience})
	if err != nil || !slices.Equal(cancelled.Sent.Recipients, []string{guest.public}) {
		t.Errorf("cancelled for %v, %v", cancelled.Sent.Recipients, err)
	}
}

// Each order is later than what it answers, also within one second.
func TestOrdersFollowEachOther(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	now := time.Now()
	still := func(config *Config) { config.Now = func() time.Time { return now } }
	at := host.offers(host)
	guestRun, hostRun := guest.startWith(still), host.startWith(still)
	offer := guestRun.begin(at, nil).Order
	times := []nostr.Timestamp{offer.Event.CreatedAt}
	times = append(times, hostRun.accepted(offer.TradeID).Order.Event.CreatedAt)
	guestRun.awaitRequests(offer.TradeID, 2)
	countered, err := guestRun.Counter(patient(t), CounterRequest{TradeID: offer.TradeID, Amount: sats(5), Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	cancelled, err := guestRun.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	times = append(times, countered.Order.Event.CreatedAt, cancelled.Sent.Order.Event.CreatedAt)
	first := nostr.Timestamp(now.Unix())
	if diff := cmp.Diff([]nostr.Timestamp{first, first + 1, first + 2, first + 3}, times); diff != "" {
		t.Error(diff)
	}
}

// newPhone is a person whose key is held by a signer app.
func newPhone(t testing.TB, p *person) *signerapp.App {
	t.Helper()
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // it never fails
	app, err := signerapp.New(signerapp.Options{PrivateKey: p.key, TransportKey: hex.EncodeToString(raw)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	holder, err := signer.NewHolder(p.public, true)
	if err != nil {
		t.Fatal(err)
	}
	p.account = holder
	p.connect = func(client *relay.Client) {
		address, err := app.Serve(patient(t), p.market.RelayURL)
		if err != nil {
			t.Fatal(err)
		}
		uri, err := signer.ParseBunkerURI(address)
		if err != nil {
			t.Fatal(err)
		}
		connection, err := uri.Connection(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		remote, err := signer.NewRemote(t.Context(), signer.Config{Connection: connection, Client: client, Account: p.public, Logger: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Connect(patient(t), uri.Secret()); err != nil {
			t.Fatal(err)
		}
		if err := holder.Set(remote); err != nil {
			t.Fatal(err)
		}
	}
	return app
}

// signed is how many events of these kinds the app was asked to sign.
func signed(t testing.TB, app *signerapp.App, kinds ...int) (count int) {
	t.Helper()
	for _, request := range app.Requests() {
		if request.Method != "sign_event" || request.Repeat {
			continue
		}
		var event struct{ Kind int }
		if err := json.Unmarshal([]byte(request.Params[0]), &event); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(kinds, event.Kind) {
			count++
		}
	}
	return count
}

// A host whose key is on a phone is asked for two signatures of an answer, and shown
// who the guest is.
func TestHostWithSignerApp(t *testing.T) {
	t.Parallel()
	host, guest, escrow := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(escrow)
	app := newPhone(t, host)
	guestRun, hostRun := guest.start(), host.start()
	offer := guestRun.begin(at, nil).Order
	hostRun.awaitRequests(offer.TradeID, 1)
	request := CounterRequest{TradeID: offer.TradeID, Amount: sats(190_000), DryRun: true, Wait: patience}
	if _, err := hostRun.Counter(patient(t), request); err != nil {
		t.Fatal(err)
	}
	if count := signed(t, app, market.KindCommitAuthorization, market.KindOrder); count != 2 {
		t.Errorf("%d signatures for a preview", count)
	}
	accepted := hostRun.accepted(offer.TradeID)
	if err := accepted.Order.CheckCommitAuthorization(); err != nil {
		t.Error(err)
	}
	agreed := guestRun.awaitRequests(offer.TradeID, 2)[1]
	guestRun.commit(at, agreed, escrow)
	var bookings Collected
	eventually(t, "the host sees the guest", func() bool {
		var err error
		if bookings, err = hostRun.List(patient(t), market.Bookings, 50, patience); err != nil {
			t.Fatal(err)
		}
		return len(bookings.Items) == 1 && bookings.Items[0].Participants.Roles.Buyer == guest.public
	})
	buyer := bookings.Items[0].Participants.Profiles.Buyer
	if buyer == nil || buyer.Name != guest.public[:8]+"..." {
		t.Errorf("the buyer is %v", buyer)
	}
	cancelled, err := hostRun.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience})
	if err != nil || cancelled.Event == nil || !market.IsSigned(cancelled.Event) || cancelled.Event.PubKey != host.public {
		t.Errorf("the cancellation is %v, %v", cancelled.Event, err)
	}
}
