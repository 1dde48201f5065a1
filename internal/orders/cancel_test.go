package orders

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox/relayproxy"
)

func TestCancelNegotiation(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	run := guest.start()
	offer := run.begin(at, nil).Order
	before := host.messages()
	preview, err := run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, DryRun: true, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	if preview.Public != nil || preview.Event != nil || preview.Sent.Receipts != nil || host.messages() != before {
		t.Errorf("the preview is %+v, with %d messages more", preview, host.messages()-before)
	}
	cancelled, err := run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	order := cancelled.Sent.Order
	if order.Stage != market.StageCancel || order.Event.PubKey != offer.Event.PubKey || !market.IsSigned(order.Event) || len(cancelled.Sent.Receipts) != 2 {
		t.Errorf("the cancellation is %s by %s, receipts %v", order.Event.Content, order.Event.PubKey, cancelled.Sent.Receipts)
	}
	if diff := cmp.Diff(offer.Event.Tags, order.Event.Tags); diff != "" {
		t.Errorf("the tags are not those of the offer: %s", diff)
	}
	for _, dryRun := range []bool{true, false} {
		_, err = run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, DryRun: dryRun, Wait: patience})
		if got := jsonOf(t, coded(t, err, fault.AlreadyCancelled).Details); got != `{"tradeId":"`+offer.TradeID+`"}` {
			t.Errorf("details %s", got)
		}
	}
	if public := guest.of(market.KindOrder, offer.TradeID); len(public) != 0 {
		t.Errorf("%d orders are public", len(public))
	}

	// The host sees the end, and may take it up again.
	hostRun := host.start()
	if requests := hostRun.awaitRequests(offer.TradeID, 2); requests[1].Stage != market.StageCancel {
		t.Errorf("the host's last order is at %s", requests[1].Stage)
	}
	hostRun.accepted(offer.TradeID)
	run.awaitRequests(offer.TradeID, 3)
	byHost, err := hostRun.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience})
	if err != nil || byHost.Sent.Order.Event.PubKey != host.public {
		t.Errorf("the host's cancellation is by %v, %v", byHost.Sent.Order.Event, err)
	}
}

func TestCancelNothing(t *testing.T) {
	t.Parallel()
	run := newPerson(t, commonRelay).start()
	for _, dryRun := range []bool{true, false} {
		_, err := run.Cancel(patient(t), CancelRequest{TradeID: "nothing", DryRun: dryRun, Wait: patience})
		if got := jsonOf(t, coded(t, err, fault.OrderNotFound).Details); got != `{"tradeId":"nothing"}` {
			t.Errorf("details %s", got)
		}
	}
}

// The host cancels without an order of its own, right after a restart.
func TestHostCancelsBooking(t *testing.T) {
	t.Parallel()
	host, guest, escrow := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(escrow)
	guestRun := guest.start()
	offer := guestRun.begin(at, nil).Order
	commit := guestRun.commit(at, offer, escrow)
	preview, err := host.start().Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, DryRun: true, Wait: patience})
	if err != nil || len(preview.Public) != 1 || preview.Public[0].Event.ID != commit.ID || preview.Event != nil {
		t.Errorf("the preview is %+v, %v", preview, err)
	}
	if public := host.of(market.KindOrder, offer.TradeID); len(public) != 1 {
		t.Errorf("%d orders after the preview", len(public))
	}
	run := host.start()
	cancelled, err := run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	event := cancelled.Event
	wantTags := nostr.Tags{
		{"a", at.anchor.String()}, {"d", offer.TradeID},
		{"p", host.public, "", "seller"}, {"p", commit.PubKey, "", "buyer"}, {"p", escrow.public, "", "escrow"},
		event.Tags[len(event.Tags)-1],
	}
	if diff := cmp.Diff(wantTags, event.Tags); diff != "" || event.Tags[5][0] != "published_at" {
		t.Errorf("tags: %s", diff)
	}
	if want := `{"start":"2027-04-05T00:00:00.000Z","end":"2027-04-07T00:00:00.000Z","proof":null,"stage":"cancel","quantity":1}`; event.Content != want {
		t.Errorf("content %s, want %s", event.Content, want)
	}
	checkChain(t, host, offer.TradeID, market.StageNegotiate)
	for _, dryRun := range []bool{true, false} {
		_, err := run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, DryRun: dryRun, Wait: patience})
		already := coded(t, err, fault.AlreadyCancelled).Details.(alreadyDetails)
		if already.TradeID != offer.TradeID || len(already.OrderGroup) != 2 {
			t.Errorf("details %s", jsonOf(t, already))
		}
	}
	// Nor can the guest cancel again what the host has.
	_, err = guestRun.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience})
	coded(t, err, fault.AlreadyCancelled)
}

// checkChain checks the person's transitions in a trade: they lead from one stage to
// cancel.
func checkChain(t *testing.T, author *person, tradeID string, stages ...market.Stage) {
	t.Helper()
	orders := map[string]string{}
	for _, event := range author.of(market.KindOrder, tradeID) {
		orders[event.PubKey] = event.ID
	}
	byAuthor := map[string][]market.OrderTransition{}
	for _, event := range author.of(market.KindOrderTransition, tradeID) {
		transition, err := market.DecodeOrderTransition(&event)
		if err != nil {
			t.Fatal(err)
		}
		byAuthor[event.PubKey] = append(byAuthor[event.PubKey], transition)
	}
	for pubkey, transitions := range byAuthor {
		chain := market.ResolveTransitions(transitions, market.RoleBuyer)
		last := chain.Ordered[len(chain.Ordered)-1]
		if chain.Failure != nil || last.OrderID != orders[pubkey] {
			t.Errorf("the chain of %s ends at order %s, want %s: %v", pubkey, last.OrderID, orders[pubkey], chain.Failure)
		}
		if last.To != market.StageCancel {
			continue
		}
		var from []market.Stage
		for _, transition := range chain.Ordered {
			from = append(from, transition.From)
		}
		if diff := cmp.Diff(stages, from); diff != "" {
			t.Errorf("the stages of %s: %s", pubkey, diff)
		}
	}
}

// The guest's own order is replaced, and its log goes on; of two calls at the same time
// one does it, and the other finds no commit any more.
func TestGuestCancelsBooking(t *testing.T) {
	t.Parallel()
	host, guest, escrow := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(escrow)
	first := guest.start()
	offer := first.begin(at, nil).Order
	commit := first.commit(at, offer, escrow)
	first.stop()
	run := guest.start()
	var cancelling sync.WaitGroup
	outcomes := make([]Cancelled, 2)
	problems := make([]error, 2)
	for i := range outcomes {
		cancelling.Go(func() {
			outcomes[i], problems[i] = run.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, Wait: patience})
		})
	}
	cancelling.Wait()
	if problems[0] != nil || outcomes[0].Event == nil {
		outcomes[0], outcomes[1] = outcomes[1], outcomes[0]
		problems[0], problems[1] = problems[1], problems[0]
	}
	if problems[0] != nil || outcomes[0].Event == nil || outcomes[1].Event != nil || problems[1] != nil && !fault.Is(problems[1], fault.AlreadyCancelled) {
		t.Fatalf("the outcomes are %v and %v", problems[0], problems[1])
	}
	event := outcomes[0].Event
	if event.PubKey != commit.PubKey || event.CreatedAt <= commit.CreatedAt {
		t.Errorf("the cancellation by %s at %d replaces that by %s at %d", event.PubKey, event.CreatedAt, commit.PubKey, commit.CreatedAt)
	}
	if diff := cmp.Diff(commit.Tags, event.Tags); diff != "" {
		t.Errorf("tags: %s", diff)
	}
	committed, err := market.DecodeOrder(commit)
	if err != nil {
		t.Fatal(err)
	}
	order, err := market.DecodeOrder(event)
	if err != nil || order.Stage != market.StageCancel || order.Proof == nil || order.CommitHash() != committed.CommitHash() {
		t.Errorf("content %s, %v", event.Content, err)
	}
	checkChain(t, guest, offer.TradeID, market.StageNegotiate, market.StageCommit)
	if public := guest.of(market.KindOrderTransition, offer.TradeID); len(public) != 2 {
		t.Errorf("%d transitions", len(public))
	}
}

// Without the relay's word a booking might be left standing.
func TestCancelWithoutCompleteAnswer(t *testing.T) {
	t.Parallel()
	relayed := startRelay(t)
	host, guest := newPerson(t, relayed), newPerson(t, relayed)
	at := host.offers(host)
	run := guest.start()
	offer := run.begin(at, nil).Order
	before := host.messages()
	relayed.Relay.Break(relayproxy.Faults{NoEOSE: true})
	again := guest.start()
	again.limits.commit = 300 * time.Millisecond
	for _, dryRun := range []bool{true, false} {
		_, err := again.Cancel(patient(t), CancelRequest{TradeID: offer.TradeID, DryRun: dryRun, Wait: patience})
		if !coded(t, err, fault.UnexpectedError).Retryable {
			t.Errorf("the error is final: %v", err)
		}
	}
	if sent := host.messages() - before; sent != 0 {
		t.Errorf("%d messages were sent", sent)
	}
}

// Whoever has seen a public order can publish another with its trade id.
func TestStrangersDoNotDecideACancellation(t *testing.T) {
	t.Parallel()
	host, guest, escrow := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	stranger := newPerson(t, commonRelay)
	at := host.offers(escrow)
	run := guest.start()
	committed, negotiated := run.begin(at, nil).Order, FirstOffer{}
	run.commit(at, committed, escrow)
	request := at.request(false)
	request.Start, request.End = day(10), day(12)
	var err error
	if negotiated, err = run.FirstOffer(patient(t), request); err != nil {
		t.Fatal(err)
	}
	stranger.strangerOrder(at, committed, market.StageCancel)
	stranger.strangerOrder(at, negotiated.Order, market.StageCommit)

	cancelled, err := run.Cancel(patient(t), CancelRequest{TradeID: negotiated.Order.TradeID, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	if cancelled.Public != nil || cancelled.Sent.Order.Stage != market.StageCancel {
		t.Errorf("the negotiation is cancelled as %+v", cancelled)
	}
	cancelled, err = run.Cancel(patient(t), CancelRequest{TradeID: committed.TradeID, Wait: patience})
	if err != nil || len(cancelled.Public) != 1 {
		t.Errorf("the cancellation of %d orders: %v", len(cancelled.Public), err)
	}
}

// strangerOrder publishes an order of somebody who takes no part in the trade.
func (p *person) strangerOrder(at place, order market.Order, stage market.Stage) {
	p.t.Helper()
	content := market.OrderContent{Start: order.Start, End: order.End, Stage: stage, Quantity: 1}
	p.publish(p.local, &nostr.Event{
		PubKey: p.public, Kind: market.KindOrder, CreatedAt: nostr.Now() + 5, Content: content.Encode(),
		Tags: nostr.Tags{{"a", at.anchor.String()}, {"d", order.TradeID}, {"p", at.anchor.PubKey, "", "seller"}},
	})
}
