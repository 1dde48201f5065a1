package orders

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

// A preview leaves nothing behind, and the live call then sends what was previewed.
func TestFirstOffer(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	run := guest.start()
	preview, err := run.FirstOffer(patient(t), at.request(true))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := run.FirstOffer(patient(t), at.request(true)); err != nil || again.Order.TradeID != preview.Order.TradeID {
		t.Errorf("another preview has trade id %s, %v, want %s", again.Order.TradeID, err, preview.Order.TradeID)
	}
	if sent := host.messages() + guest.messages(); sent != 0 || preview.Receipts != nil {
		t.Errorf("the preview sent %d messages, receipts %v", sent, preview.Receipts)
	}
	if guest.highest != -1 || guest.trade(preview.Order.TradeID) != "" {
		t.Errorf("the preview kept index %d and the record %q", guest.highest, guest.trade(preview.Order.TradeID))
	}

	offer := run.begin(at, nil)
	order := offer.Order
	if order.TradeID != preview.Order.TradeID || guest.highest != 1 {
		t.Errorf("trade id %s, index %d; the preview had %s", order.TradeID, guest.highest, preview.Order.TradeID)
	}
	if len(offer.Receipts) != 2 || !offer.Receipts[0].BroadcastSuccessful || !offer.Receipts[1].BroadcastSuccessful {
		t.Errorf("receipts %v", offer.Receipts)
	}
	checkFirstOffer(t, guest, host, at, order)
	checkRecord(t, guest, order)
	// The echo: no follow-up has to wait for the relay.
	if requests := run.readNegotiation(order.TradeID, nil).requests; len(requests) != 1 || requests[0].Event.ID != order.Event.ID {
		t.Errorf("right after sending the negotiation has %d orders", len(requests))
	}
	there := host.start().awaitRequests(order.TradeID, 1)
	if diff := cmp.Diff(order.Event.Tags, there[0].Event.Tags); diff != "" || there[0].Event.Content != order.Event.Content {
		t.Errorf("the host got another order: %s", diff)
	}
	if public := guest.of(market.KindOrder, order.TradeID); len(public) != 0 {
		t.Errorf("%d orders are public", len(public))
	}
}

func checkFirstOffer(t *testing.T, guest, host *person, at place, order market.Order) {
	t.Helper()
	key, err := guest.keys.Trade(1)
	if err != nil {
		t.Fatal(err)
	}
	trade, published := key.PublicKey(), strconv.FormatInt(int64(order.Event.CreatedAt), 10)
	if !market.IsSigned(order.Event) || order.Event.PubKey != trade {
		t.Errorf("the offer is not signed by the trade key but %s", order.Event.PubKey)
	}
	tags := order.Event.Tags
	if len(tags) != 7 {
		t.Fatalf("tags %v", tags)
	}
	hash := tags[4][5]
	want := nostr.Tags{
		{"a", at.anchor.String()}, {"d", order.TradeID}, {"p", host.public, "", "seller"}, {"p", trade, "", "buyer"},
		{"participant_proof", "buyer", trade, host.public, "nip44", hash, tags[4][6]},
		{"participant_proof", "buyer", trade, trade, "nip44", hash, tags[5][6]},
		{"published_at", published},
	}
	if diff := cmp.Diff(want, tags); diff != "" {
		t.Errorf("tags: %s", diff)
	}
	for recipient, reader := range map[string]Signer{host.public: host.local, trade: newLocal(t, key.Hex())} {
		for _, proof := range order.Proofs {
			if proof.Recipient != recipient {
				continue
			}
			opened, err := order.OpenProof(proof, func(_, sender, payload string) (string, error) {
				return reader.NIP44Decrypt(t.Context(), sender, payload)
			})
			if err != nil || opened.Identity != guest.public {
				t.Errorf("the proof for %s shows %q, %v", recipient, opened.Identity, err)
			}
		}
	}
	wantContent := `{"start":"2027-04-05T00:00:00.000Z","end":"2027-04-07T00:00:00.000Z","proof":null,"stage":"negotiate","quantity":1,` +
		`"amount":{"value":"0.00200000","denomination":"BTC","decimals":8},"recipient":"` + trade + `"}`
	if order.Event.Content != wantContent {
		t.Errorf("content %s, want %s", order.Event.Content, wantContent)
	}
}

func checkRecord(t *testing.T, guest *person, order market.Order) {
	t.Helper()
	var record struct{ UpdatedAt string }
	text := guest.trade(order.TradeID)
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		t.Fatalf("the record is %q: %v", text, err)
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000000Z", record.UpdatedAt); err != nil {
		t.Error(err)
	}
	listing, _ := order.Listing()
	want := `{"id":"` + order.TradeID + `","state":"offered","isTerminal":false,"updatedAt":"` + record.UpdatedAt + `","tradeId":"` + order.TradeID +
		`","listingAnchor":"` + order.ListingAnchor + `","sellerPubkey":"` + listing.PubKey + `","order":` + jsonOf(t, json.RawMessage(market.EncodeEmbeddedEvent(order.Event))) + `}`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("the record: %s", diff)
	}
}

// An amount of the guest's own and dates the wrong way round are taken as given.
func TestFirstOfferKeepsTheInput(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	request := host.offers(host).request(true)
	request.Start, request.End, request.Amount = day(7), day(5), sats(150_000)
	offer, err := guest.start().FirstOffer(patient(t), request)
	if err != nil {
		t.Fatal(err)
	}
	if !offer.Order.Start.Equal(day(7)) || !offer.Order.End.Equal(day(5)) || offer.Order.Amount.Text() != "0.00150000" {
		t.Errorf("offered %s to %s for %s", offer.Order.Start, offer.Order.End, offer.Order.Amount.Text())
	}
}

// An offer at one's own listing goes to nobody else.
func TestFirstOfferAtOwnListing(t *testing.T) {
	t.Parallel()
	host := newPerson(t, commonRelay)
	run := host.start()
	offer := run.begin(host.offers(host), nil)
	if len(offer.Receipts) != 1 || host.messages() != 1 {
		t.Errorf("receipts %v, %d messages", offer.Receipts, host.messages())
	}
	sent, err := run.Counter(patient(t), CounterRequest{TradeID: offer.Order.TradeID, Accept: true, DryRun: true, Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	if sent.Recipients == nil || len(sent.Recipients) != 0 {
		t.Errorf("recipients %v", sent.Recipients)
	}
}

func TestFirstOfferRefusals(t *testing.T) {
	t.Parallel()
	host, guest, escrow := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(escrow)
	run := guest.start()
	run.commit(at, run.begin(at, nil).Order, escrow)
	before := guest.messages()
	const iso = "2027-04-05T00:00:00.000Z"
	for _, dryRun := range []bool{true, false} {
		request := at.request(dryRun)
		request.Given = "as given"
		_, err := run.FirstOffer(patient(t), request)
		taken := coded(t, err, fault.ListingUnavailable)
		if want := `{"anchor":"as given","start":"` + iso + `","end":"2027-04-07T00:00:00.000Z"}`; jsonOf(t, taken.Details) != want {
			t.Errorf("details %s, want %s", jsonOf(t, taken.Details), want)
		}
		request.Listing.Identifier = "castle"
		_, err = run.FirstOffer(patient(t), request)
		if got := jsonOf(t, coded(t, err, fault.ListingNotFound).Details); got != `{"anchor":"as given"}` {
			t.Errorf("details %s", got)
		}
	}
	next := at.request(false)
	next.Start, next.End = day(7), day(8)
	if _, err := run.FirstOffer(patient(t), next); err != nil {
		t.Errorf("the day of departure is free, but %v", err)
	}
	other := newPerson(t, commonRelay)
	other.publish(other.local, &nostr.Event{PubKey: other.public, Kind: market.KindListing, CreatedAt: nostr.Now(), Tags: nostr.Tags{{"d", "cabin"}}})
	request := FirstOfferRequest{Listing: market.Anchor{Kind: market.KindListing, PubKey: other.public, Identifier: "cabin"}, Start: day(5), End: day(6)}
	if _, err := run.FirstOffer(patient(t), request); err == nil || fault.From(err).Code != fault.UnexpectedError {
		t.Errorf("a place without price and no amount: %v", err)
	}
	if sent := guest.messages() - before; sent != 1 {
		t.Errorf("%d messages were sent, want the one of the offer that was good", sent)
	}
}

// cutOff is listings whose relay never says that it has told all.
type cutOff struct{ Listings }

func (l cutOff) Available(ctx context.Context, anchor market.Anchor, stay market.DateRange) (*market.Listing, bool, *fault.Error, error) {
	listing, _, _, err := l.Listings.Available(ctx, anchor, stay)
	return listing, false, relay.Answer{Relays: []relay.RelayOutcome{{End: relay.EndTimeout}}}.Warning(), err
}

// Half an answer leaves it open whether dates are free.
func TestFirstOfferWithoutCompleteAnswer(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	run := guest.startWith(func(config *Config) { config.Listings = cutOff{config.Listings} })
	for _, dryRun := range []bool{true, false} {
		_, err := run.FirstOffer(patient(t), at.request(dryRun))
		unknown := coded(t, err, fault.AvailabilityUnknown)
		if want := `{"anchor":"` + at.anchor.String() + `","start":"2027-04-05T00:00:00.000Z","end":"2027-04-07T00:00:00.000Z"}`; !unknown.Retryable || jsonOf(t, unknown.Details) != want {
			t.Errorf("retryable %t, details %s", unknown.Retryable, jsonOf(t, unknown.Details))
		}
	}
	if sent := host.messages() + guest.messages(); sent != 0 || guest.highest != -1 {
		t.Errorf("%d messages were sent, index %d", sent, guest.highest)
	}
	request := at.request(true)
	request.Listing.Identifier = "castle"
	_, err := run.FirstOffer(patient(t), request)
	if !coded(t, err, fault.ListingNotFound).Retryable {
		t.Error("a listing that may exist is as good as none")
	}
}

func TestFirstOffersAtTheSameTime(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	run := guest.start()
	var sending sync.WaitGroup
	tradeIDs := make([]string, 3)
	for i := range tradeIDs {
		sending.Go(func() {
			offer, err := run.FirstOffer(patient(t), at.request(false))
			if err != nil {
				t.Error(err)
				return
			}
			tradeIDs[i] = offer.Order.TradeID
		})
	}
	sending.Wait()
	if tradeIDs[0] == tradeIDs[1] || tradeIDs[1] == tradeIDs[2] || tradeIDs[0] == tradeIDs[2] {
		t.Errorf("trade ids %v", tradeIDs)
	}
}

// heldInbox holds messages back until it is let go.
type heldInbox struct {
	Inbox
	entered, let chan struct{}
	fail         error
}

func (i heldInbox) Send(ctx context.Context, draft market.MessageDraft) ([]relay.Receipt, error) {
	if i.entered != nil {
		close(i.entered)
		<-i.let
	}
	if i.fail != nil {
		return nil, i.fail
	}
	return i.Inbox.Send(ctx, draft)
}

// Who no longer waits gets an answer at once; the offer is sent and recorded.
func TestFirstOfferGoesOnWhenCancelled(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	held := heldInbox{entered: make(chan struct{}), let: make(chan struct{})}
	run := guest.startWith(func(config *Config) {
		held.Inbox = config.Inbox
		config.Inbox = held
	})
	ctx, cancel := context.WithCancelCause(patient(t))
	gone := errors.New("gone")
	go func() {
		<-held.entered
		cancel(gone)
	}()
	if _, err := run.FirstOffer(ctx, at.request(false)); !errors.Is(err, gone) {
		t.Errorf("the error is %v", err)
	}
	close(held.let)
	tradeID, err := guest.keys.TradeID(1)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the offer is recorded", func() bool { return guest.trade(tradeID) != "" })
	if host.messages() != 1 {
		t.Errorf("%d messages", host.messages())
	}
}

// unsent is the error of a message that has not left, see Inbox.
type unsent struct{ error }

func (unsent) NothingLeft() bool { return true }

// An index is free again when it is certain that nobody has seen the offer.
func TestFirstOfferThatNobodyGot(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	for _, test := range []struct {
		problem error
		index   uint32
	}{{unsent{errors.New("refused")}, 1}, {errors.New("delivery is unknown"), 2}} {
		run := guest.startWith(func(config *Config) { config.Inbox = heldInbox{Inbox: config.Inbox, fail: test.problem} })
		if _, err := run.FirstOffer(patient(t), at.request(false)); !errors.Is(err, test.problem) {
			t.Errorf("the error is %v", err)
		}
		want, err := guest.keys.TradeID(test.index)
		if err != nil {
			t.Fatal(err)
		}
		preview, err := run.FirstOffer(patient(t), at.request(true))
		if err != nil || preview.Order.TradeID != want {
			t.Errorf("after %v the next trade is %s, %v, want that of index %d", test.problem, preview.Order.TradeID, err, test.index)
		}
		guest.highest = -1
		run.stop()
	}
}

func TestFirstOfferThatIsNotSent(t *testing.T) {
	t.Parallel()
	host, guest := newPerson(t, commonRelay), newPerson(t, commonRelay)
	at := host.offers(host)
	refused := errors.New("refused")
	run := guest.startWith(func(config *Config) { config.Inbox = heldInbox{Inbox: config.Inbox, fail: refused} })
	if _, err := run.FirstOffer(patient(t), at.request(false)); !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
	tradeID, err := guest.keys.TradeID(1)
	if err != nil {
		t.Fatal(err)
	}
	if guest.trade(tradeID) != "" || guest.highest != 1 {
		t.Errorf("record %q, index %d: the first must not be, the second stays used", guest.trade(tradeID), guest.highest)
	}
}
