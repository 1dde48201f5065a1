package actions

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
)

// Keys of results, in the order of spec 60 §10.
var (
	threadViewKeys = []string{
		"type", "anchor", "tradeId", "conversation", "title", "counterparties", "unreadCount", "messageCount",
		"hasMoreMessages", "messages", "orderRequests",
	}
	threadMessageKeys = []string{"id", "senderPubkey", "senderName", "sentByUser", "content", "createdAt"}
	sentMessageKeys   = []string{"id", "senderPubkey", "sentByUser", "content", "createdAt"}
	updatesKeys       = []string{
		"count", "events", "profiles", "threads", "listingReviewCount", "listingReviews", "tripCount", "trips", "bookingCount", "bookings",
	}
	updatesThreadKeys = []string{
		"anchor", "conversation", "participantPubkeys", "counterpartyPubkeys", "counterparties", "unreadCount",
		"orderRequests", "textMessages", "events",
	}
)

// rental is a market with a paid trade of a guest, a host and the escrow.
type rental struct {
	market              *sandbox.Market
	product             *Product
	host, guest, escrow sandbox.Person
	tradeID             string
	// keys are those of the guest's trade key.
	key *signer.Local
}

func newRental(t testing.TB) rental {
	t.Helper()
	at := startMarket(t, sandbox.Options{Hosts: 1, Guests: 5})
	r := rental{market: at, product: onMarket(t, at), host: at.Hosts[0], guest: at.Guests[0], escrow: at.Escrow}
	keys := accountKeys(t, r.guest.PrivateKey)
	key, err := keys.Trade(1)
	if err != nil {
		t.Fatal(err)
	}
	if r.tradeID, err = keys.TradeID(1); err != nil {
		t.Fatal(err)
	}
	r.key = localSigner(t, key.Hex())
	r.book(t)
	return r
}

func accountKeys(t testing.TB, privateKey string) *derivation.Keys {
	t.Helper()
	key, err := derivation.ParsePrivateKey(privateKey)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := derivation.SeedFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := derivation.NewKeys(seed)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func localSigner(t testing.TB, key string) *signer.Local {
	t.Helper()
	local, err := signer.NewLocal(key)
	if err != nil {
		t.Fatal(err)
	}
	return local
}

func signedEvent(t testing.TB, key string, event *nostr.Event) *nostr.Event {
	t.Helper()
	if err := event.Sign(key); err != nil {
		t.Fatal(err)
	}
	return event
}

// book puts the trade on the relay: the offer as a message, the paid order for all.
func (r rental) book(t testing.TB) {
	t.Helper()
	now := nostr.Now()
	listing := signedEvent(t, r.host.PrivateKey, &nostr.Event{Kind: market.KindListing, CreatedAt: now, Tags: nostr.Tags{
		{"d", "cabin"}, {"title", "Cabin"}, {"autoAccept", "true"}, {"price", "0.00100000", "BTC", "day"}, {"t", market.Category},
	}})
	method := signedEvent(t, r.host.PrivateKey, &nostr.Event{Kind: market.KindSellerConfiguration, CreatedAt: now, Tags: nostr.Tags{{"p", r.escrow.PublicKey}}})
	service := signedEvent(t, r.escrow.PrivateKey, &nostr.Event{Kind: market.KindEscrowService, CreatedAt: now, Tags: nostr.Tags{{"d", "s"}},
		Content: `{"pubkey":"` + r.escrow.PublicKey + `","type":"EVM"}`})
	anchor := "30402:" + r.host.PublicKey + ":cabin"
	offer := market.FirstOffer{
		ListingAnchor: anchor, TradeID: r.tradeID, TradeKey: r.key.PublicKey(), Amount: money.Satoshis(200000),
		Start: time.Date(2027, 4, 5, 0, 0, 0, 0, time.UTC), End: time.Date(2027, 4, 7, 0, 0, 0, 0, time.UTC),
		Participants: r.participants(t, anchor, ""),
	}.Event(now)
	if err := r.key.SignEvent(patient(t), offer); err != nil {
		t.Fatal(err)
	}
	negotiated, err := market.DecodeOrder(offer)
	if err != nil {
		t.Fatal(err)
	}
	committed := market.Commit{
		Negotiated: negotiated, TradeKey: r.key.PublicKey(), Participants: r.participants(t, anchor, r.escrow.PublicKey),
		Proof: market.OrderProof{
			Listing: listing, Payment: &market.PaymentProof{Method: market.PaymentEVM, TxHash: "0x01"},
			Escrow: &market.EscrowContext{Service: market.EncodeEmbeddedEvent(service), SellerMethod: market.EncodeEmbeddedEvent(method)},
		},
	}.Event(now)
	if err := r.key.SignEvent(patient(t), committed); err != nil {
		t.Fatal(err)
	}
	review := market.Review{TradeID: r.tradeID, ListingAnchor: anchor, OrderAnchor: negotiated.Anchor(), Stars: 5, Text: "Quiet."}
	events := []nostr.Event{*listing, *method, *service, *committed, *signedEvent(t, r.guest.PrivateKey, review.Draft(r.guest.PublicKey, now))}
	message := market.NewOrderMessage(offer, r.tradeID, []string{r.host.PublicKey}).Event(r.guest.PublicKey, now)
	for _, recipient := range []string{r.host.PublicKey, r.guest.PublicKey} {
		wrap, err := giftwrap.Wrap(patient(t), localSigner(t, r.guest.PrivateKey), message, recipient, now, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, *wrap)
	}
	if err := r.market.Relay.Insert(patient(t), events...); err != nil {
		t.Fatal(err)
	}
}

// participants are the tags of an order by the trade key, with proofs.
func (r rental) participants(t testing.TB, anchor, escrow string) nostr.Tags {
	t.Helper()
	authorization := signedEvent(t, r.guest.PrivateKey, market.DraftTradeKeyAuthorization(market.TradeKeyTerms{
		Identity: r.guest.PublicKey, Participant: r.key.PublicKey(), Role: market.RoleBuyer, ListingAnchor: anchor, TradeID: r.tradeID,
	}, nostr.Now()))
	planned := market.TradeParties{
		Seller: r.host.PublicKey, Buyer: r.key.PublicKey(), BuyerIdentity: r.guest.PublicKey, Escrow: escrow,
	}.Participants()
	planned[1].Authorization = market.EncodeEmbeddedEvent(authorization)
	tags, err := market.PlanParticipants(planned, func(recipient, plaintext string) (string, error) {
		return r.key.NIP44Encrypt(patient(t), recipient, plaintext)
	})
	if err != nil {
		t.Fatal(err)
	}
	return tags
}

// shownThread is what a test reads of a thread view.
type shownThread struct {
	Anchor, Title             string
	UnreadCount, MessageCount int
	HasMoreMessages           bool
	Messages                  []struct {
		Content, SenderName string
		SentByUser          bool
	}
	Counterparties []market.ProfileSummary
	OrderRequests  []market.EventJSON
}

// messageResult is what a test reads of a message or an invitation.
type messageResult struct {
	DryRun                               bool
	ParticipantPubkeys, RecipientPubkeys []string
	Roles                                map[string]string
	SentMessage                          struct{ ID, Content string }
	ThreadView                           shownThread
}

func member(t testing.TB, object, name string) string {
	t.Helper()
	return string(read[map[string]json.RawMessage](t, object)[name])
}

func checkKeys(t testing.TB, what, object string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, keysOf(t, object)); diff != "" {
		t.Errorf("keys of %s (-want +got):\n%s", what, diff)
	}
}

// first is the first member of an array.
func first(t testing.TB, array string) string {
	t.Helper()
	members := read[[]json.RawMessage](t, array)
	if len(members) == 0 {
		t.Fatal("the array is empty")
	}
	return string(members[0])
}

// awaitUpdates asks until the updates are as they should be.
func awaitUpdates(t testing.TB, product *Product, pubkey, what string, reached func(UpdatesResult) bool) string {
	t.Helper()
	for ctx := patient(t); ; time.Sleep(10 * time.Millisecond) {
		text, _ := callAs(t, product, "hostr.updates", pubkey, `{}`)
		if reached(read[UpdatesResult](t, text)) {
			return text
		}
		if ctx.Err() != nil {
			t.Fatalf("the updates never have %s: %s", what, text)
		}
	}
}

func TestThreadActions(t *testing.T) {
	t.Parallel()
	r := newRental(t)
	guest, host, escrow := signIn(t, r.product, r.guest.PrivateKey), signIn(t, r.product, r.host.PrivateKey), signIn(t, r.product, r.escrow.PrivateKey)
	thread := market.ThreadAnchor([]string{guest, host}, r.tradeID)

	text := awaitUpdates(t, r.product, host, "the booking", func(u UpdatesResult) bool { return u.BookingCount == 1 })
	checkKeys(t, "updates", text, updatesKeys...)
	checkKeys(t, "a thread of updates", first(t, member(t, text, "threads")), updatesThreadKeys...)
	checkKeys(t, "the reviews of a listing", first(t, member(t, text, "listingReviews")), "listing", "anchor", "count", "reviews")
	checkKeys(t, "a booking", first(t, member(t, text, "bookings")), "found", "mode", "tradeId", "valid", "group", "listing", "participants")
	updates := read[UpdatesResult](t, text)
	if updates.Count != 1 || updates.ListingReviewCount != 1 || updates.TripCount != 0 || updates.Threads[0].UnreadCount != 0 {
		t.Errorf("updates of the host: %s", text)
	}
	if name := updates.Profiles[guest].Name; name != r.guest.Name {
		t.Errorf("the guest is called %q", name)
	}
	if updates.Events[0].Sig != nil || !strings.Contains(text, `"sig":null`) {
		t.Error("a message has a signature")
	}
	awaitUpdates(t, r.product, guest, "the trip", func(u UpdatesResult) bool { return u.TripCount == 1 && len(u.ListingReviews) == 0 })

	input := fmt.Sprintf(`{"tradeId":%q,"role":"Guest","content":" Welcome. "}`, r.tradeID)
	preview, outcome := callAs(t, r.product, "hostr.thread.message", host, input)
	checkKeys(t, "a preview", preview, "dryRun", "content", "recipientPubkeys", "threadView")
	checkKeys(t, "a thread view", member(t, preview, "threadView"), threadViewKeys...)
	shown := read[messageResult](t, preview)
	if !outcome.DryRun || !slices.Equal(shown.RecipientPubkeys, []string{guest}) || shown.ThreadView.Anchor != thread || shown.ThreadView.MessageCount != 0 {
		t.Errorf("preview %s", preview)
	}
	live, outcome := callAs(t, r.product, "hostr.thread.message", host, strings.TrimSuffix(input, "}")+`,"dryRun":false}`)
	checkKeys(t, "a sent message", live, "dryRun", "sentMessage", "recipientPubkeys", "threadView")
	checkKeys(t, "the message", member(t, live, "sentMessage"), sentMessageKeys...)
	checkKeys(t, "a message of a view", first(t, member(t, member(t, live, "threadView"), "messages")), threadMessageKeys...)
	if shown = read[messageResult](t, live); outcome.DryRun || shown.SentMessage.Content != "Welcome." || shown.ThreadView.MessageCount != 1 {
		t.Errorf("sent %s", live)
	}

	awaitUpdates(t, r.product, guest, "the message", func(u UpdatesResult) bool { return u.Count == 2 })
	view, _ := callAs(t, r.product, "hostr.thread.view", guest, `{"anchor":"`+thread+`"}`)
	checkKeys(t, "a view", view, "found", "threadView")
	seen := read[messageResult](t, view).ThreadView
	if seen.UnreadCount != 1 || len(seen.Messages) != 1 || seen.Messages[0].SenderName != r.host.Name || seen.Messages[0].SentByUser ||
		len(seen.OrderRequests) != 1 || seen.Title != "Chat with "+r.host.Name {
		t.Errorf("view %s", view)
	}
	checkEscrow(t, r, guest, host, escrow)
}

func checkEscrow(t *testing.T, r rental, guest, host, escrow string) {
	t.Helper()
	all := slices.Sorted(slices.Values([]string{guest, host, escrow}))
	others := slices.Sorted(slices.Values([]string{host, escrow}))
	input := fmt.Sprintf(`{"tradeId":%q`, r.tradeID)
	ready, outcome := callAs(t, r.product, "hostr.escrow.involve", guest, input+`,"dryRun":false}`)
	checkKeys(t, "a ready escrow thread", ready, "dryRun", "requiresMessage", "message", "tradeId", "participantPubkeys", "recipientPubkeys", "threadView")
	shown := read[messageResult](t, ready)
	if outcome.DryRun || !shown.DryRun || !slices.Equal(shown.ParticipantPubkeys, all) || !slices.Equal(shown.RecipientPubkeys, others) {
		t.Errorf("involve %s", ready)
	}
	preview, _ := callAs(t, r.product, "hostr.escrow.involve", guest, input+`,"message":"Help."}`)
	checkKeys(t, "an escrow preview", preview, "dryRun", "content", "tradeId", "participantPubkeys", "recipientPubkeys", "threadView")
	operator, _ := callAs(t, r.product, "hostr.escrow.involve", escrow, input+`}`)
	if got := read[messageResult](t, operator); got.Roles["seller"] != host || got.Roles["buyer"] != guest || got.Roles["escrow"] != escrow {
		t.Errorf("the escrow sees %s", operator)
	}

	live, _ := callAs(t, r.product, "hostr.escrow.involve", guest, input+`,"content":"Help.","dryRun":false}`)
	checkKeys(t, "an escrow message", live, "dryRun", "sentMessage", "tradeId", "participantPubkeys", "recipientPubkeys", "threadView")
	if shown = read[messageResult](t, live); shown.ThreadView.MessageCount != 1 || shown.ThreadView.Anchor != market.ThreadAnchor(all, r.tradeID) {
		t.Errorf("involved %s", live)
	}
	awaitUpdates(t, r.product, escrow, "the call", func(u UpdatesResult) bool { return u.Count == 1 && u.Threads[0].UnreadCount == 1 })
}

// Also an account without profile reads and writes (Q6).
func TestThreadsWithoutProfile(t *testing.T) {
	t.Parallel()
	at := startMarket(t, sandbox.Options{Hosts: 1, Guests: 5})
	product := onMarket(t, at)
	if at.Guests[4].Profile != nil {
		t.Fatal("the guest has a profile")
	}
	newcomer, host := signIn(t, product, at.Guests[4].PrivateKey), signIn(t, product, at.Hosts[0].PrivateKey)
	empty, _ := callAs(t, product, "hostr.updates", newcomer, `{}`)
	want := `{"count":0,"events":[],"profiles":{},"threads":[],"listingReviewCount":0,"listingReviews":[],"tripCount":0,"trips":[],"bookingCount":0,"bookings":[]}`
	if empty != want {
		t.Errorf("updates %s", empty)
	}
	to := at.Hosts[0].NPub
	for i := range 3 {
		_, _ = callAs(t, product, "hostr.thread.message", newcomer, fmt.Sprintf(`{"content":"%d","recipientPubkeys":[%q],"dryRun":false}`, i, to))
		awaitUpdates(t, product, host, "the message", func(u UpdatesResult) bool { return u.Count == i+1 })
	}
	view, _ := callAs(t, product, "hostr.thread.view", host, fmt.Sprintf(`{"recipientPubkeys":%q,"limit":2}`, newcomer))
	shown := read[messageResult](t, view).ThreadView
	if shown.MessageCount != 3 || !shown.HasMoreMessages || len(shown.Messages) != 2 || shown.Messages[1].Content != "2" ||
		shown.Messages[1].SenderName != newcomer[:8]+"..." {
		t.Errorf("view %s", view)
	}
	checkKeys(t, "a view without tag", member(t, view, "threadView"),
		slices.DeleteFunc(slices.Clone(threadViewKeys), func(key string) bool { return key == "tradeId" || key == "conversation" })...)

	missing, _ := callAs(t, product, "hostr.thread.view", host, `{"conversation":"none"}`)
	if missing != `{"found":false,"threadViews":[],"message":"No conversation matches that request."}` {
		t.Errorf("not found: %s", missing)
	}
	_, _ = callAs(t, product, "hostr.thread.message", host, `{"content":"x","conversation":"plan","recipientPubkey":"`+newcomer+`"}`)
	if missing, _ = callAs(t, product, "hostr.thread.view", host, `{"conversation":"plan"}`); !strings.Contains(missing, `"found":false`) {
		t.Errorf("a preview leaves a thread: %s", missing)
	}
}

func TestThreadFailures(t *testing.T) {
	t.Parallel()
	at := startMarket(t, sandbox.Options{Hosts: 1, Guests: 1})
	product := onMarket(t, at)
	guest := signIn(t, product, at.Guests[0].PrivateKey)
	nobody := strings.Repeat("0", 64)
	order := market.EncodeEmbeddedEvent(&nostr.Event{Kind: market.KindOrder, Tags: nostr.Tags{{"a", "30402:a:b"}, {"d", "t"}}, Content: `{"stage":"negotiate"}`})
	for _, test := range []struct {
		id, input string
		code      fault.Code
		path      string
	}{
		{"hostr.thread.message", `{"content":" "}`, fault.InvalidInput, "content"},
		{"hostr.thread.message", encoded(t, map[string]string{"content": order}), fault.InvalidInput, "content"},
		{"hostr.thread.message", `{"content":"x","recipientPubkeys":["` + guest + `","npub1"]}`, fault.InvalidInput, "recipientPubkeys[1]"},
		{"hostr.thread.message", `{"content":"x","recipientPubkeys":["` + strings.Repeat("f", 64) + `"]}`, fault.InvalidInput, "recipientPubkeys[0]"},
		{"hostr.thread.message", `{"content":"` + strings.Repeat("x", giftwrap.MaxRumor) + `","recipientPubkeys":["` + at.Hosts[0].PublicKey + `"]}`, fault.InvalidInput, "content"},
		{"hostr.thread.view", `{"recipientPubkeys":["x"]}`, fault.InvalidInput, "recipientPubkeys[0]"},
		{"hostr.thread.message", `{"content":"x"}`, fault.RecipientRequired, ""},
		{"hostr.thread.message", `{"content":"x","recipientPubkeys":["` + guest + `"]}`, fault.RecipientRequired, ""},
		{"hostr.thread.message", `{"content":"x","recipientRole":"escrow","conversation":"` + nobody + `"}`, fault.TradeIDRequired, "tradeId"},
		{"hostr.thread.message", `{"content":"x","recipientRole":"escrow","tradeId":"` + nobody + `"}`, fault.EscrowThreadResolutionFailed, ""},
		{"hostr.escrow.involve", `{}`, fault.InvalidInput, "tradeId"},
		{"hostr.escrow.involve", `{"tradeId":"` + nobody + `"}`, fault.EscrowThreadResolutionFailed, ""},
	} {
		_, failure := call(t, product, test.id, guest, test.input)
		if failure == nil || failure.Code != test.code || failure.Path != test.path {
			t.Errorf("%s %.200s: %v", test.id, test.input, failure)
			continue
		}
		if test.code == fault.EscrowThreadResolutionFailed {
			checkKeys(t, "the details", encoded(t, failure.Details), "tradeId", "activePubkey")
		}
	}
	for _, id := range []string{"hostr.updates", "hostr.thread.view", "hostr.thread.message", "hostr.escrow.involve"} {
		if _, failure := call(t, product, id, stranger, `{"content":"x","tradeId":"y"}`); failure == nil || failure.Code != fault.AuthRequired {
			t.Errorf("%s by a stranger: %v", id, failure)
		}
	}
}
