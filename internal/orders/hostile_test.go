package orders

import (
	"crypto/rand"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// answers sends the host's order in a trade, in a message that names whom it likes. The
// message may be dated.
func (r *process) answers(offer market.Order, change func(*market.OrderContent), at nostr.Timestamp, named ...string) *nostr.Event {
	r.t.Helper()
	content := offer.OrderContent
	change(&content)
	event := &nostr.Event{PubKey: r.public, Kind: market.KindOrder, CreatedAt: at, Tags: offer.Event.Tags, Content: content.Encode()}
	if err := r.local.SignEvent(patient(r.t), event); err != nil {
		r.t.Fatal(err)
	}
	r.writes(market.NewOrderMessage(event, offer.TradeID, named).Event(r.public, at), named[0])
	return event
}

// writes sends a message as it is to one person, and to nobody else.
func (r *process) writes(rumor *nostr.Event, to string) {
	r.t.Helper()
	wrap, err := giftwrap.Wrap(patient(r.t), r.local, rumor, to, r.timestamp(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.client.Publish(patient(r.t), *wrap, relay.PublishOptions{Relays: []string{r.market.RelayURL}}); err != nil {
		r.t.Fatal(err)
	}
}

// awaitMessages waits until the account has so many messages.
func (r *process) awaitMessages(count int) {
	r.t.Helper()
	eventually(r.t, "the messages have come", func() (came bool) {
		r.inbox.Read(func(threads *market.Threads) { came = len(threads.Inbox()) >= count })
		return came
	})
}

// Whom the other side names in its messages gets nothing of ours.
func TestOthersDoNotChooseOurRecipients(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	run, hostRun := guest.start(), host.start()
	offer := run.begin(at, nil).Order
	same := func(*market.OrderContent) {}
	hostRun.answers(offer, same, hostRun.timestamp(), guest.public, offer.Event.PubKey)
	hostRun.answers(offer, same, hostRun.timestamp(), guest.public, "garbage")
	run.awaitMessages(3)
	if sent, err := run.Counter(patient(t), CounterRequest{TradeID: offer.TradeID, Accept: true, Wait: patience}); err != nil || !cmp.Equal(sent.Recipients, []string{host.public}) {
		t.Errorf("the guest's answer goes to %v, %v", sent.Recipients, err)
	}
	if cancelled, err := run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience}); err != nil || !cmp.Equal(cancelled.Sent.Recipients, []string{host.public}) {
		t.Errorf("the guest's cancellation goes to %v, %v", cancelled.Sent.Recipients, err)
	}
}

// A guest's first message names somebody else, and what is no public key.
func TestGuestDoesNotChooseTheHostsRecipients(t *testing.T) {
	t.Parallel()
	host, guest, other := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	run := host.start()
	guestRun := guest.start()
	offer, err := guestRun.FirstOffer(patient(t), at.request(true))
	if err != nil {
		t.Fatal(err)
	}
	message := market.NewOrderMessage(offer.Order.Event, offer.Order.TradeID, []string{host.public, other.public, "garbage"})
	guestRun.writes(message.Event(guest.public, guestRun.timestamp()), host.public)
	run.awaitRequests(offer.Order.TradeID, 1)
	for range 2 {
		sent, err := run.Counter(patient(t), CounterRequest{TradeID: offer.Order.TradeID, Accept: true, Wait: patience})
		if err != nil || !cmp.Equal(sent.Recipients, []string{guest.public}) {
			t.Errorf("the host's answer goes to %v, %v", sent.Recipients, err)
		}
	}
}

// Nobody has the last word for ever by a date.
func TestDatesDoNotFreezeANegotiation(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	run, hostRun := guest.start(), host.start()
	offer := run.begin(at, nil).Order
	const never = 9007199254740991
	hostRun.answers(offer, func(content *market.OrderContent) { content.Stage = market.StageCancel }, never, guest.public)
	hostRun.answers(offer, func(content *market.OrderContent) { content.Amount = sats(999_999) }, 4_000_000_000, guest.public)
	run.awaitRequests(offer.TradeID, 3)
	sent, err := run.Counter(patient(t), CounterRequest{TradeID: offer.TradeID, Accept: true, DryRun: true, Wait: patience})
	if err != nil || sent.Order.Amount.Text() != offer.Amount.Text() {
		t.Errorf("accepts %s, %v, want the guest's own %s", sent.Order.Event.Content, err, offer.Amount.Text())
	}
	if _, err := run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience}); err != nil {
		t.Error(err)
	}
	_, err = run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience})
	coded(t, err, fault.AlreadyCancelled)
}

// The host fills an order up until a copy of it is too long.
func TestCancelOfAnOrderThatIsFull(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	run, hostRun := guest.start(), host.start()
	offer := run.begin(at, nil).Order
	// Children need no signature, which the cancellation has.
	message := func(filling int) *nostr.Event {
		order := *offer.Event
		order.PubKey, order.CreatedAt, order.Sig = host.public, hostRun.timestamp(), ""
		order.Tags = append(append(nostr.Tags{}, order.Tags...), nostr.Tag{"x", strings.Repeat("x", filling)})
		return market.NewOrderMessage(&order, offer.TradeID, []string{guest.public}).Event(host.public, order.CreatedAt)
	}
	full := message(giftwrap.MaxRumor - len(market.EncodeEmbeddedEvent(message(0))))
	hostRun.writes(full, guest.public)
	requests := run.awaitRequests(offer.TradeID, 2)
	if newest := requests[1]; newest.Event.PubKey != host.public {
		t.Fatalf("the newest order is by %s", newest.Event.PubKey)
	}
	cancelled, err := run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	order := cancelled.Sent.Order
	if order.Stage != market.StageCancel || order.ListingAnchor != offer.ListingAnchor || !order.Start.Equal(*offer.Start) || len(order.Event.Tags) > 5 {
		t.Errorf("the cancellation has %d tags and the content %s", len(order.Event.Tags), order.Event.Content)
	}
	if requests := hostRun.awaitRequests(offer.TradeID, 2); requests[len(requests)-1].Stage != market.StageCancel {
		t.Error("the host does not see the cancellation")
	}
}

// Of several cancellations at the same time one is sent.
func TestCancelNegotiationOnce(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	run := guest.start()
	offer := run.begin(host.offers(host), nil).Order
	problems := make([]error, 4)
	var cancelling sync.WaitGroup
	for i := range problems {
		cancelling.Go(func() {
			_, problems[i] = run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience})
		})
	}
	cancelling.Wait()
	succeeded := 0
	for _, problem := range problems {
		if problem == nil {
			succeeded++
			continue
		}
		coded(t, problem, fault.AlreadyCancelled)
	}
	if succeeded != 1 {
		t.Errorf("%d cancellations were sent: %v", succeeded, problems)
	}
}
