package threads_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/threads"
)

func TestMessagesBothWays(t *testing.T) {
	t.Parallel()
	guest, host := start(t, commonRelay), start(t, commonRelay)
	sent := guest.write(" Is the cabin free? ", "summer", host.public)
	if got := sent.Thread.TextMessages(); len(got) != 1 || got[0].Event.ID != sent.Message.ID || got[0].Event.Content != "Is the cabin free?" {
		t.Errorf("the thread after sending holds %d texts", len(got))
	}
	arrived := host.awaitText(sent.Thread.Anchor, "Is the cabin free?")
	if arrived.Unread() != 1 || sent.Thread.Unread() != 0 {
		t.Errorf("unread: %d at the host, %d at the guest", arrived.Unread(), sent.Thread.Unread())
	}

	to, err := host.Address(patient(t), threads.Addressee{Query: threads.Query{Conversation: "summer"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{guest.public}, to.Recipients); diff != "" {
		t.Errorf("recipients (-want +got):\n%s", diff)
	}
	host.say(to, "It is.")
	if got := guest.awaitText(sent.Thread.Anchor, "It is."); got.Unread() != 1 || len(got.TextMessages()) != 2 {
		t.Errorf("%d unread of %d", got.Unread(), len(got.TextMessages()))
	}
	if got := host.find(threads.Query{Pubkeys: []string{guest.public}, Conversation: "summer"}); got.Unread() != 1 {
		t.Errorf("an own message counts: %d unread", got.Unread())
	}
}

// A preview leaves no thread behind (Q17).
func TestAddressLeavesNoThread(t *testing.T) {
	t.Parallel()
	guest := start(t, commonRelay)
	query := threads.Query{Conversation: "winter", Pubkeys: []string{strings.Repeat("ab", 32)}}
	to, err := guest.Address(patient(t), threads.Addressee{Query: query})
	if err != nil {
		t.Fatal(err)
	}
	if to.Thread.Tag != "winter" || len(to.Thread.Participants) != 2 {
		t.Errorf("%+v", to.Thread)
	}
	if guest.find(query) != nil || len(guest.anchors()) != 0 {
		t.Error("the preview has made a thread")
	}
}

// Roles are people, never the trade key that nobody reads (Q15).
func TestRolesArePeople(t *testing.T) {
	t.Parallel()
	b := book(t)
	for _, test := range []struct {
		who  *person
		role string
		want []string // empty for nobody
	}{
		{b.host, "guest", []string{b.guest.public}},
		{b.host, " Buyer ", []string{b.guest.public}},
		{b.guest, "host", []string{b.host.public}},
		{b.guest, "seller", []string{b.host.public}},
		{b.escrow, "guest", []string{b.guest.public}},
		{b.escrow, "host", []string{b.host.public}},
		{b.guest, "escrow", sorted(b.host.public, b.escrow.public)},
		{b.guest, "guest", nil},
		{b.host, "neighbour", nil},
	} {
		to, err := test.who.Address(patient(t), threads.Addressee{
			Query: threads.Query{TradeID: b.id}, Role: test.role, Limit: patience,
		})
		if test.want == nil {
			if !fault.Is(err, fault.RecipientRequired) {
				t.Errorf("%q: %v", test.role, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", test.role, err)
		}
		if diff := cmp.Diff(test.want, to.Recipients); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.role, diff)
		}
		if want := sorted(append([]string{test.who.public}, test.want...)...); !slices.Equal(to.Thread.Participants, want) || to.Thread.Tag != b.id {
			t.Errorf("%q: the thread of %q holds %q", test.role, to.Thread.Tag, to.Thread.Participants)
		}
	}
}

// During a negotiation there are no public orders.
func TestRolesOfAnOffer(t *testing.T) {
	t.Parallel()
	guest, host, escrow := start(t, commonRelay), start(t, commonRelay), start(t, commonRelay)
	begun := guest.begin(host.offer(escrow), escrow)
	eventually(t, "the offer arrives", func() bool { return host.find(threads.Query{TradeID: begun.id}) != nil })
	for _, test := range []struct {
		who  *person
		role string
		want string
	}{{host, "guest", guest.public}, {guest, "host", host.public}} {
		to, err := test.who.Address(patient(t), threads.Addressee{Query: threads.Query{TradeID: begun.id}, Role: test.role, Limit: patience})
		if err != nil {
			t.Fatalf("%s: %v", test.role, err)
		}
		if diff := cmp.Diff([]string{test.want}, to.Recipients); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.role, diff)
		}
	}
	if _, err := guest.EscrowThread(patient(t), begun.id, patience); !fault.Is(err, fault.EscrowThreadResolutionFailed) {
		t.Errorf("an escrow before the payment: %v", err)
	}
}

// All three find the same thread, and an outsider's order changes nothing (Q14).
func TestEscrowThread(t *testing.T) {
	t.Parallel()
	b := book(t)
	stranger := start(t, commonRelay)
	for _, tags := range []nostr.Tags{nil, {{"p", b.key.PublicKey(), "", "buyer"}, {"p", b.host.public, "", "seller"}, {"p", b.escrow.public, "", "escrow"}}} {
		content := market.OrderContent{Stage: market.StageCommit, Quantity: 1}
		stranger.publish(stranger.local, &nostr.Event{
			PubKey: stranger.public, Kind: market.KindOrder, CreatedAt: nostr.Now() + 5, Content: content.Encode(),
			Tags: append(nostr.Tags{{"a", b.at.anchor.String()}, {"d", b.id}}, tags...),
		})
	}
	want := market.ThreadAnchor(b.everybody(), b.id)
	for name, who := range map[string]*person{"guest": b.guest, "host": b.host, "escrow": b.escrow} {
		shared, err := who.EscrowThread(patient(t), " "+b.id, patience)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if shared.Thread.Anchor != want || !slices.Equal(shared.Thread.Participants, b.everybody()) {
			t.Errorf("%s: participants %q", name, shared.Thread.Participants)
		}
		if shared.People.Seller != b.host.public || shared.People.Buyer != b.guest.public || shared.People.Escrow != b.escrow.public {
			t.Errorf("%s: roles %+v", name, shared.People)
		}
	}

	shared, err := b.guest.EscrowThread(patient(t), b.id, patience)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := b.guest.Send(patient(t), shared.Thread, "Please look at this.", patience)
	if err != nil {
		t.Fatal(err)
	}
	var recipients []string
	for tag := range sent.Message.Tags.FindAll("p") {
		recipients = append(recipients, tag[1])
	}
	if diff := cmp.Diff(sorted(b.host.public, b.escrow.public), recipients); diff != "" {
		t.Errorf("recipients (-want +got):\n%s", diff)
	}
	b.host.awaitText(want, "Please look at this.")
	b.escrow.awaitText(want, "Please look at this.")
	to, err := b.host.Address(patient(t), threads.Addressee{Query: threads.Query{TradeID: b.id, Anchor: want}, Role: "guest", Limit: patience})
	if err != nil || !slices.Equal(to.Thread.Participants, sorted(b.guest.public, b.host.public)) {
		t.Errorf("a role beside the wider thread: %+v, %v", to, err)
	}
}

// A stranger who has seen the public order writes under its trade id.
func TestStrangersInATrade(t *testing.T) {
	t.Parallel()
	b := book(t)
	stranger := start(t, commonRelay)
	sent := stranger.write("Send me the door code.", b.id, b.host.public)
	b.host.awaitText(sent.Thread.Anchor, "Send me the door code.")
	pair := sorted(b.guest.public, b.host.public)
	if found := b.host.find(threads.Query{TradeID: b.id}); !slices.Equal(found.Participants, pair) {
		t.Errorf("found the thread of %q", found.Participants)
	}
	to, err := b.host.Address(patient(t), threads.Addressee{Query: threads.Query{TradeID: b.id}, Limit: patience})
	if err != nil || !slices.Equal(to.Thread.Participants, pair) {
		t.Errorf("addressed to %q, %v", to.Recipients, err)
	}
}

// A public order, and one sent on in private, name a key that nobody reads.
func TestTradeKeysAreNobody(t *testing.T) {
	t.Parallel()
	guest, host, escrow, friend := start(t, commonRelay), start(t, commonRelay), start(t, commonRelay), start(t, commonRelay)
	begun := guest.begin(host.offer(escrow), escrow)
	if _, err := guest.inbox.Send(patient(t), market.NewOrderMessage(begun.offer.Event, begun.id, []string{friend.public})); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		who  *person
		want []string // nil for a refusal
	}{{host, []string{guest.public}}, {friend, nil}} {
		eventually(t, "the offer arrives", func() bool { return test.who.find(threads.Query{TradeID: begun.id}) != nil })
		to, err := test.who.Address(patient(t), threads.Addressee{
			Query: threads.Query{Pubkeys: []string{begun.key.PublicKey()}, TradeID: begun.id}, Limit: patience,
		})
		if coded := fault.From(err); test.want == nil && (coded == nil || coded.Code != fault.InvalidInput || coded.Path != "recipientPubkeys[0]") || test.want != nil && err != nil {
			t.Errorf("%+v, %v", to, err)
		}
		if diff := cmp.Diff(test.want, to.Recipients); diff != "" {
			t.Errorf("recipients (-want +got):\n%s", diff)
		}
	}
}

func TestUnknownTrade(t *testing.T) {
	t.Parallel()
	guest := start(t, commonRelay)
	_, err := guest.EscrowThread(patient(t), strings.Repeat("0", 64), patience)
	if coded := fault.From(err); coded == nil || coded.Code != fault.EscrowThreadResolutionFailed || coded.Details == nil {
		t.Errorf("%v", err)
	}
	_, err = guest.Address(patient(t), threads.Addressee{Query: threads.Query{TradeID: strings.Repeat("0", 64)}, Role: "host", Limit: patience})
	if !fault.Is(err, fault.RecipientRequired) {
		t.Errorf("%v", err)
	}
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	b := book(t)
	b.guest.write("Hello.", b.id, b.host.public)
	thread := market.ThreadAnchor([]string{b.guest.public, b.host.public}, b.id)
	b.host.awaitText(thread, "Hello.")
	var reviews []string
	for _, text := range []string{"Quiet.", "Warm."} {
		reviewer := newPerson(t, commonRelay)
		review := market.Review{TradeID: b.id, ListingAnchor: b.at.anchor.String(), OrderAnchor: b.offer.Anchor(), Stars: 5, Text: text}
		reviews = append(reviews, reviewer.publish(reviewer.local, review.Draft(reviewer.public, nostr.Now())).ID)
	}
	updates, err := b.host.Updates(patient(t), 10, patience)
	if err != nil {
		t.Fatal(err)
	}
	if len(updates.Inbox) != 2 || len(updates.Threads) != 1 || updates.Threads[0].Anchor != thread || len(updates.Threads[0].OrderRequests()) != 1 {
		t.Errorf("%d messages, threads %+v", len(updates.Inbox), updates.Threads)
	}
	if len(updates.Bookings) != 1 || updates.Bookings[0].Group.TradeID() != b.id || len(updates.Trips) != 0 {
		t.Errorf("%d bookings, %d trips", len(updates.Bookings), len(updates.Trips))
	}
	for _, pubkey := range b.everybody() {
		if updates.People[pubkey].Pubkey != pubkey {
			t.Errorf("%s is missing among the people", pubkey)
		}
	}
	if len(updates.Reviews.Listings) != 1 || updates.Reviews.Listings[0].Anchor != b.at.anchor.String() || updates.Reviews.Warning != nil {
		t.Fatalf("reviews %+v", updates.Reviews)
	}
	var found []string
	for _, event := range updates.Reviews.Listings[0].Reviews {
		found = append(found, event.ID)
	}
	if diff := cmp.Diff(sorted(reviews...), sorted(found...)); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}

// Whoever has waited long enough gets what there is.
func TestTimeIsOver(t *testing.T) {
	t.Parallel()
	at, err := sandbox.Start(patient(t), sandbox.Options{Hosts: 1, Guests: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = at.Close() }()
	at.Relay.Break(sandbox.Faults{NoEOSE: true})
	guest := newPersonBy(t, at, hurriedClock{started: time.Now()})
	if err := guest.Await(patient(t), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if guest.inbox.Live() {
		t.Error("the history is complete without its end")
	}
	if _, err := guest.EscrowThread(patient(t), strings.Repeat("0", 64), time.Millisecond); !fault.Is(err, fault.EscrowThreadResolutionFailed) {
		t.Errorf("%v", err)
	}
	updates, err := guest.Updates(patient(t), 10, time.Millisecond)
	if err != nil || len(updates.Threads) != 0 {
		t.Errorf("%+v, %v", updates, err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := guest.Await(cancelled, patience); err == nil {
		t.Error("a cancelled call goes on")
	}
}

func TestCheckText(t *testing.T) {
	t.Parallel()
	order := market.EncodeEmbeddedEvent(&nostr.Event{Kind: market.KindOrder, Tags: nostr.Tags{{"a", "30402:a:b"}, {"d", "t"}}, Content: `{"stage":"negotiate"}`})
	for text, refused := range map[string]bool{"": false, "Hello": false, `{"a":1}`: false, "{}": false, order: true, " " + order: true} {
		if err := threads.CheckText(text); fault.Is(err, fault.InvalidInput) != refused {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
