package hostrdaemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	hostr "hostr-daemon/internal/market"
	"hostr-daemon/internal/money"
)

// What the bridge sends about trades.
type (
	offerInput struct {
		ListingAnchor string       `json:"listingAnchor,omitempty"`
		TradeID       string       `json:"tradeId,omitempty"`
		Start         string       `json:"start,omitempty"`
		End           string       `json:"end,omitempty"`
		Amount        *amountInput `json:"amount,omitempty"`
		DryRun        bool         `json:"dryRun"`
	}
	amountInput struct {
		Value    string `json:"value"`
		Currency string `json:"currency"`
		Unit     string `json:"unit,omitempty"`
	}
	tradeInput struct {
		TradeID string `json:"tradeId"`
		DryRun  bool   `json:"dryRun"`
	}
	lookupInput struct {
		TradeID string `json:"tradeId,omitempty"`
	}
	reviewInput struct {
		TradeID string `json:"tradeId"`
		Rating  int    `json:"rating"`
		Content string `json:"content"`
		DryRun  bool   `json:"dryRun"`
	}
	messageInput struct {
		TradeID          string   `json:"tradeId"`
		Content          string   `json:"content,omitempty"`
		RecipientRole    string   `json:"recipientRole,omitempty"`
		RecipientPubkeys []string `json:"recipientPubkeys,omitempty"`
		DryRun           bool     `json:"dryRun"`
	}
	viewInput struct {
		TradeID          string   `json:"tradeId"`
		RecipientPubkeys []string `json:"recipientPubkeys,omitempty"`
	}
)

// What it reads.
type (
	eventData struct {
		ID        string          `json:"id"`
		PubKey    string          `json:"pubkey"`
		CreatedAt nostr.Timestamp `json:"created_at"`
		Kind      int             `json:"kind"`
		Tags      nostr.Tags      `json:"tags"`
		Content   string          `json:"content"`
		Sig       *string         `json:"sig"`
	}
	// orderData is what the actions that offer, accept, cancel and review return.
	orderData struct {
		DryRun           bool        `json:"dryRun"`
		WillPublish      *bool       `json:"willPublish"`
		Mode             string      `json:"mode"`
		Delivery         string      `json:"delivery"`
		Reason           string      `json:"reason"`
		TradeID          string      `json:"tradeId"`
		Event            *eventData  `json:"event"`
		OrderGroup       []eventData `json:"orderGroup"`
		RecipientPubkeys []string    `json:"recipientPubkeys"`
		RelayResponses   []struct {
			BroadcastSuccessful bool `json:"broadcastSuccessful"`
		} `json:"relayResponses"`
	}
	summaryData struct {
		Pubkey string `json:"pubkey"`
		Name   string `json:"name"`
	}
	threadData struct {
		Conversation        string        `json:"conversation"`
		CounterpartyPubkeys []string      `json:"counterpartyPubkeys"`
		Counterparties      []summaryData `json:"counterparties"`
		UnreadCount         int           `json:"unreadCount"`
		OrderRequests       []eventData   `json:"orderRequests"`
		TextMessages        []eventData   `json:"textMessages"`
		Events              []eventData   `json:"events"`
	}
	updatesData struct {
		Threads        []threadData `json:"threads"`
		ListingReviews []struct {
			Anchor  string      `json:"anchor"`
			Reviews []eventData `json:"reviews"`
		} `json:"listingReviews"`
		Trips    []tradeData `json:"trips"`
		Bookings []tradeData `json:"bookings"`
	}
	viewData struct {
		Found      bool `json:"found"`
		ThreadView struct {
			MessageCount int `json:"messageCount"`
			Messages     []struct {
				ID           string `json:"id"`
				SenderPubkey string `json:"senderPubkey"`
				SentByUser   bool   `json:"sentByUser"`
				Content      string `json:"content"`
			} `json:"messages"`
		} `json:"threadView"`
	}
	messageData struct {
		DryRun             bool     `json:"dryRun"`
		RequiresMessage    bool     `json:"requiresMessage"`
		Content            string   `json:"content"`
		ParticipantPubkeys []string `json:"participantPubkeys"`
		RecipientPubkeys   []string `json:"recipientPubkeys"`
		SentMessage        *struct {
			ID      string `json:"id"`
			Content string `json:"content"`
		} `json:"sentMessage"`
		Roles map[string]string `json:"roles"`
	}
	groupData struct {
		ListingTitle string      `json:"listingTitle"`
		Stage        string      `json:"stage"`
		Cancelled    bool        `json:"cancelled"`
		Active       bool        `json:"active"`
		Orders       []eventData `json:"orders"`
	}
	tradeData struct {
		Found        bool      `json:"found"`
		Mode         string    `json:"mode"`
		TradeID      string    `json:"tradeId"`
		Valid        bool      `json:"valid"`
		Group        groupData `json:"group"`
		Participants struct {
			ResolvedParticipantSet []string               `json:"resolvedParticipantSet"`
			Roles                  map[string]string      `json:"roles"`
			Profiles               map[string]summaryData `json:"profiles"`
		} `json:"participants"`
	}
	listData struct {
		Mode         string      `json:"mode"`
		Count        int         `json:"count"`
		InvalidCount int         `json:"invalidCount"`
		Results      []tradeData `json:"results"`
	}
	lookupData struct {
		Found     bool        `json:"found"`
		Committed bool        `json:"committed"`
		Count     int         `json:"count"`
		Orders    []eventData `json:"orders"`
	}
)

func (e eventData) event() *nostr.Event {
	event := &nostr.Event{ID: e.ID, PubKey: e.PubKey, CreatedAt: e.CreatedAt, Kind: e.Kind, Tags: e.Tags, Content: e.Content}
	if e.Sig != nil {
		event.Sig = *e.Sig
	}
	return event
}

// bookingStep is one of the steps between which a daemon may end.
type bookingStep struct {
	name string
	take func(*booking)
}

var bookingSteps = []bookingStep{
	{"sign in", (*booking).signIn},
	{"preview an offer", (*booking).previewOffer},
	{"offer", (*booking).makeOffer},
	{"the host counters", (*booking).counter},
	{"accept", (*booking).accept},
	{"messages between guest and host", (*booking).talk},
	{"pay", (*booking).pay},
	{"bring the escrow in", (*booking).involve},
	{"the escrow answers", (*booking).escrowAnswers},
	{"review too early", (*booking).reviewEarly},
	{"strangers, and the escrow confirms", (*booking).strangers},
	{"review", (*booking).review},
	{"book another stay", (*booking).bookAnother},
	{"the host cancels", (*booking).hostCancels},
	{"the guest cancels", (*booking).guestCancels},
	{"a negotiation that ends", (*booking).endNegotiation},
}

func (b *booking) signIn() {
	if b.guest.phone != nil {
		b.guest.daemon.signIn(b.guest.phone, "login-guest")
	} else {
		b.guest.signInByKey()
	}
	b.host.signInByKey()
	b.escrow.signInByKey()
	for _, party := range b.parties() {
		if got := party.updates(); len(got.Threads)+len(got.Trips)+len(got.Bookings) != 0 {
			b.t.Errorf("updates of a new %s: %+v", party.Role, got)
		}
	}
}

// stayOf is the first day of a stay of three nights; each has its own month.
func stayOf(number int) time.Time {
	return time.Date(2027, time.Month(4+number), 5, 0, 0, 0, 0, time.UTC)
}

func (b *booking) offer(start time.Time, dryRun bool) offerInput {
	return offerInput{ListingAnchor: b.place.anchor, Start: start.Format(time.RFC3339), End: start.AddDate(0, 0, 3).Format(time.RFC3339), DryRun: dryRun}
}

func sats(count string) *amountInput {
	return &amountInput{Value: count, Currency: "BTC", Unit: "sats"}
}

// preview previews an offer, which must reach nobody.
func (b *booking) preview(start time.Time) orderData {
	b.t.Helper()
	before := len(b.wraps(b.host.PublicKey))
	envelope := b.guest.do("hostr.orders.negotiateOffer", b.offer(start, true))
	preview := data[orderData](b.t, envelope)
	if !envelope.DryRun || !preview.DryRun || preview.Delivery != "giftwrap" || preview.RelayResponses != nil || len(preview.TradeID) != 64 {
		b.t.Errorf("the preview of an offer: %+v", preview)
	}
	if after := len(b.wraps(b.host.PublicKey)); after != before {
		b.t.Errorf("the preview sent %d messages", after-before)
	}
	return preview
}

func (b *booking) previewOffer() { b.first = b.preview(stayOf(0)).TradeID }

// begin sends an offer and waits until the host has it.
func (b *booking) begin(start time.Time) orderData {
	b.t.Helper()
	preview := b.preview(start)
	sent := b.sent(b.guest.do("hostr.orders.negotiateOffer", b.offer(start, false)))
	if sent.TradeID != preview.TradeID || sent.Delivery != "giftwrap" {
		b.t.Errorf("the offer is trade %s, in the preview it was %s", sent.TradeID, preview.TradeID)
	}
	b.has(b.host, sent.TradeID, *sent.Event, 1)
	return sent
}

// sent checks the answer about an order that went out to the other side and to oneself.
func (b *booking) sent(envelope envelope) orderData {
	b.t.Helper()
	sent := data[orderData](b.t, envelope)
	if envelope.DryRun || sent.DryRun || sent.Event == nil || !hostr.IsSigned(sent.Event.event()) || len(sent.RelayResponses) != 2 {
		b.t.Fatalf("sent: %s", envelope.Data)
	}
	for _, response := range sent.RelayResponses {
		if !response.BroadcastSuccessful {
			b.t.Errorf("a relay did not take it: %s", envelope.Data)
		}
	}
	return sent
}

// has waits until a party has an order, the newest of so many between guest and host.
func (b *booking) has(p *party, tradeID string, order eventData, count int) {
	b.t.Helper()
	b.eventually("the "+string(p.Role)+" has the order", func() bool {
		requests := b.thread(p, tradeID, b.guest, b.host).OrderRequests
		return len(requests) == count && cmp.Equal(requests[count-1], order)
	})
}

func (p *party) updates() updatesData {
	p.home.t.Helper()
	return data[updatesData](p.home.t, p.do("hostr.updates", emptyInput{}))
}

// thread is a party's conversation of exactly these people, empty when there is none.
func (b *booking) thread(p *party, tradeID string, people ...*party) threadData {
	b.t.Helper()
	want := others(p, people)
	for _, thread := range p.updates().Threads {
		if thread.Conversation == tradeID && slices.Equal(thread.CounterpartyPubkeys, want) {
			return thread
		}
	}
	return threadData{}
}

// others are the pubkeys of the people without one of them, sorted.
func others(p *party, people []*party) (pubkeys []string) {
	for _, other := range people {
		if other.PublicKey != p.PublicKey {
			pubkeys = append(pubkeys, other.PublicKey)
		}
	}
	slices.Sort(pubkeys)
	return pubkeys
}

func (b *booking) makeOffer() {
	b.host.updates() // has the messages so far: what comes now is unread
	sent := b.begin(stayOf(0))
	if sent.TradeID != b.first {
		b.t.Errorf("the preview before burnt an index: %s is now %s", b.first, sent.TradeID)
	}
	if sent.Event.PubKey == b.guest.PublicKey {
		b.t.Error("the offer shows who the guest is")
	}
	thread := b.thread(b.host, b.first, b.guest, b.host)
	if thread.UnreadCount != 1 || len(thread.Counterparties) != 1 || thread.Counterparties[0].Name != b.guest.Name {
		b.t.Errorf("the host's conversation: %+v", thread)
	}
	if found := b.trades(b.guest, "trips"); found.Count+found.InvalidCount != 0 {
		b.t.Errorf("an offer is a trip: %+v", found)
	}
}

// afterNewest waits until what is said now is later, by the clock of events, than all
// that a conversation holds. Of equally old messages a new daemon cannot tell which was
// the later one, nor whether one is unread.
func (b *booking) afterNewest(tradeID string, people ...*party) {
	b.t.Helper()
	var newest nostr.Timestamp
	for _, event := range b.thread(people[0], tradeID, people...).Events {
		newest = max(newest, event.CreatedAt)
	}
	if newest == 0 {
		b.t.Fatalf("the conversation of trade %s is empty", tradeID)
	}
	b.eventually("a second is over", func() bool { return nostr.Now() > newest })
}

// answer previews an order within a trade and then sends it to the other side.
func (b *booking) answer(from, to *party, action string, input func(dryRun bool) any) orderData {
	b.t.Helper()
	before := len(b.wraps(to.PublicKey))
	preview := data[orderData](b.t, from.do(action, input(true)))
	if !preview.DryRun || !slices.Equal(preview.RecipientPubkeys, []string{to.PublicKey}) || preview.Event == nil {
		b.t.Errorf("the preview of %s: %+v", action, preview)
	}
	if after := len(b.wraps(to.PublicKey)); after != before {
		b.t.Errorf("the preview of %s sent %d messages", action, after-before)
	}
	return b.sent(from.do(action, input(false)))
}

const agreedSats = "273451"

func (b *booking) counter() {
	b.afterNewest(b.first, b.guest, b.host)
	sent := b.answer(b.host, b.guest, "hostr.orders.negotiateOffer", func(dryRun bool) any {
		return offerInput{TradeID: b.first, Amount: sats(agreedSats), DryRun: dryRun}
	})
	b.has(b.guest, b.first, *sent.Event, 2)
	order := decodeOrder(b.t, sent.Event.event())
	if err := order.CheckCommitAuthorization(); err != nil || order.Event.PubKey != b.host.PublicKey {
		b.t.Errorf("the host's word: %v", err)
	}
}

func (b *booking) accept() {
	b.afterNewest(b.first, b.guest, b.host)
	sent := b.answer(b.guest, b.host, "hostr.orders.negotiateAccept", func(dryRun bool) any {
		return tradeInput{TradeID: b.first, DryRun: dryRun}
	})
	b.has(b.host, b.first, *sent.Event, 3)
	b.agreed = decodeOrder(b.t, sent.Event.event())
	if err := b.agreed.CheckCommitAuthorization(); err != nil {
		b.t.Errorf("the host's word is not carried on: %v", err)
	}
	if value := b.agreed.Amount.Result().SmallestUnitValue; value != agreedSats || b.agreed.Event.PubKey == b.guest.PublicKey {
		b.t.Errorf("accepted %s by %s", value, b.agreed.Event.PubKey)
	}
}

// message previews a text and sends it; everybody it is for gets it once, as unread.
func (b *booking) message(from *party, input messageInput, to ...*party) {
	b.t.Helper()
	people := append([]*party{from}, to...)
	unread := make([]int, len(people))
	for i, party := range people {
		unread[i] = b.thread(party, input.TradeID, people...).UnreadCount
	}
	before := len(b.wraps(to[0].PublicKey))
	input.Content, input.DryRun = fmt.Sprintf("Private words, the %d. of the %s.", len(b.said), from.Role), true
	b.said = append(b.said, input.Content)
	preview := data[messageData](b.t, from.do("hostr.thread.message", input))
	if !preview.DryRun || preview.Content != input.Content || !slices.Equal(preview.RecipientPubkeys, others(from, people)) || preview.SentMessage != nil {
		b.t.Errorf("the preview of a message: %+v", preview)
	}
	if after := len(b.wraps(to[0].PublicKey)); after != before {
		b.t.Errorf("the preview of a message sent %d", after-before)
	}
	input.DryRun = false
	sent := data[messageData](b.t, from.do("hostr.thread.message", input))
	if sent.DryRun || sent.SentMessage == nil || sent.SentMessage.Content != input.Content {
		b.t.Fatalf("sent: %+v", sent)
	}
	for i, party := range people {
		b.arrives(party, people, input.TradeID, sent.SentMessage.ID, input.Content)
		want := unread[i] + 1
		if party == from {
			want = unread[i]
		}
		if got := b.thread(party, input.TradeID, people...).UnreadCount; got != want {
			b.t.Errorf("%d messages are unread by the %s, want %d", got, party.Role, want)
		}
	}
}

// arrives waits until a text is in a conversation, and checks that it is shown once.
func (b *booking) arrives(p *party, people []*party, tradeID, id, text string) {
	b.t.Helper()
	b.eventually("the "+string(p.Role)+" has the message", func() bool {
		return slices.ContainsFunc(b.thread(p, tradeID, people...).TextMessages, func(event eventData) bool { return event.ID == id })
	})
	view := data[viewData](b.t, p.do("hostr.thread.view", viewInput{TradeID: tradeID, RecipientPubkeys: others(p, people)}))
	messages, count := view.ThreadView.Messages, 0
	for _, message := range messages {
		if message.ID == id && message.Content == text && message.SentByUser == (message.SenderPubkey == p.PublicKey) {
			count++
		}
	}
	if !view.Found || count != 1 || view.ThreadView.MessageCount != len(messages) {
		b.t.Errorf("the %s views the message %d times: %+v", p.Role, count, view)
	}
}

func (b *booking) talk() {
	b.afterNewest(b.first, b.guest, b.host)
	b.message(b.host, messageInput{TradeID: b.first, RecipientRole: "guest"}, b.guest)
	b.message(b.guest, messageInput{TradeID: b.first, RecipientRole: "host"}, b.host)
	b.message(b.guest, messageInput{TradeID: b.first}, b.host)
	b.message(b.guest, messageInput{TradeID: b.first, RecipientPubkeys: []string{b.host.NPub}}, b.host)
}

func (b *booking) pay() {
	b.commit = b.book(b.agreed)
	b.shows(b.first, 1, b.commit)
	for side, p := range b.sides() {
		found := data[lookupData](b.t, p.do("hostr."+side+".list", lookupInput{TradeID: b.first}))
		if !found.Found || !found.Committed || found.Count != 1 {
			b.t.Errorf("looked up by the %s: %+v", p.Role, found)
		}
	}
}

func (b *booking) sides() map[string]*party {
	return map[string]*party{"trips": b.guest, "bookings": b.host}
}

func (b *booking) trades(p *party, side string) listData {
	b.t.Helper()
	return data[listData](b.t, p.do("hostr."+side+".list", lookupInput{}))
}

// shows waits until both sides list a trade with exactly these orders, among so many
// trades, and checks what they say of it.
func (b *booking) shows(tradeID string, of int, orders ...*nostr.Event) {
	b.t.Helper()
	cancelled := slices.ContainsFunc(orders, func(event *nostr.Event) bool { return decodeOrder(b.t, event).Stage == hostr.StageCancel })
	stage := "commit"
	if cancelled {
		stage = "cancel"
	}
	for side, p := range b.sides() {
		var list listData
		var trade tradeData
		b.eventually(fmt.Sprintf("%s of the %s hold trade %s with %d orders", side, p.Role, tradeID, len(orders)), func() bool {
			list = b.trades(p, side)
			at := slices.IndexFunc(list.Results, func(item tradeData) bool { return item.TradeID == tradeID })
			if at < 0 {
				return false
			}
			trade = list.Results[at]
			return slices.Equal(idsOf(trade.Group.Orders), eventIDs(orders))
		})
		if list.Mode != side || list.Count != of || list.InvalidCount != 0 {
			b.t.Errorf("the %s of the %s: %d and %d", list.Mode, p.Role, list.Count, list.InvalidCount)
		}
		b.isResolved(p, trade)
		if !trade.Found || !trade.Valid || trade.Mode != side || trade.Group.Stage != stage || trade.Group.Cancelled != cancelled ||
			trade.Group.Active == cancelled || trade.Group.ListingTitle != "Lake cabin" {
			b.t.Errorf("the trade of the %s: %+v", p.Role, trade)
		}
		in := p.updates()
		if !slices.ContainsFunc(slices.Concat(in.Trips, in.Bookings), func(item tradeData) bool { return cmp.Equal(item, trade) }) {
			b.t.Errorf("the updates of the %s have another trade: %+v", p.Role, in)
		}
	}
}

// isResolved checks that a party knows who is who in a trade.
func (b *booking) isResolved(p *party, trade tradeData) {
	b.t.Helper()
	people := map[string]*party{"seller": b.host, "buyer": b.guest, "escrow": b.escrow}
	for role, person := range people {
		profile := trade.Participants.Profiles[role]
		if trade.Participants.Roles[role] != person.PublicKey || profile.Pubkey != person.PublicKey || profile.Name != person.Name {
			b.t.Errorf("the %s is %s (%+v) to the %s", role, trade.Participants.Roles[role], profile, p.Role)
		}
	}
	if len(trade.Participants.Roles) != len(people) || len(trade.Participants.ResolvedParticipantSet) != len(people) {
		b.t.Errorf("there are others in the trade of the %s: %+v", p.Role, trade.Participants)
	}
}

func idsOf(events []eventData) (ids []string) {
	for _, event := range events {
		ids = append(ids, event.ID)
	}
	slices.Sort(ids)
	return ids
}

func eventIDs(events []*nostr.Event) (ids []string) {
	for _, event := range events {
		ids = append(ids, event.ID)
	}
	slices.Sort(ids)
	return ids
}

func (b *booking) involve() {
	for _, party := range b.parties() {
		party.updates() // has the messages so far
	}
	everybody := []string{b.guest.PublicKey, b.host.PublicKey, b.escrow.PublicKey}
	slices.Sort(everybody)
	text := "Private words, of the guest to the escrow."
	b.said = append(b.said, text)
	before := len(b.wraps(b.escrow.PublicKey))
	for _, input := range []messageInput{{TradeID: b.first, DryRun: true}, {TradeID: b.first}, {TradeID: b.first, Content: text, DryRun: true}} {
		preview := data[messageData](b.t, b.guest.do("hostr.escrow.involve", input))
		if !preview.DryRun || preview.RequiresMessage != (input.Content == "") || preview.Content != input.Content || preview.SentMessage != nil ||
			!slices.Equal(preview.ParticipantPubkeys, everybody) || !slices.Equal(preview.RecipientPubkeys, others(b.guest, b.parties())) {
			b.t.Errorf("the preview of %+v: %+v", input, preview)
		}
	}
	if after := len(b.wraps(b.escrow.PublicKey)); after != before {
		b.t.Errorf("the previews sent %d messages", after-before)
	}
	sent := data[messageData](b.t, b.guest.do("hostr.escrow.involve", messageInput{TradeID: b.first, Content: text}))
	if sent.DryRun || sent.SentMessage == nil || sent.SentMessage.Content != text {
		b.t.Fatalf("sent: %+v", sent)
	}
	for _, party := range b.parties() {
		b.arrives(party, b.parties(), b.first, sent.SentMessage.ID, text)
	}
	for _, party := range []*party{b.host, b.escrow} {
		if unread := b.thread(party, b.first, b.parties()...).UnreadCount; unread != 1 {
			b.t.Errorf("%d messages are unread by the %s", unread, party.Role)
		}
	}
}

func (b *booking) escrowAnswers() {
	seen := data[messageData](b.t, b.escrow.do("hostr.escrow.involve", messageInput{TradeID: b.first}))
	want := map[string]string{"seller": b.host.PublicKey, "buyer": b.guest.PublicKey, "escrow": b.escrow.PublicKey}
	if !cmp.Equal(seen.Roles, want) {
		b.t.Errorf("the roles are %v", seen.Roles)
	}
	b.afterNewest(b.first, b.escrow, b.guest, b.host)
	b.message(b.escrow, messageInput{TradeID: b.first}, b.guest, b.host)
	b.message(b.host, messageInput{TradeID: b.first, RecipientRole: "escrow"}, b.guest, b.escrow)
}

const reviewed = "Quiet place, easy check-in."

func (b *booking) reviewEarly() {
	input := reviewInput{TradeID: b.first, Rating: 4, Content: reviewed, DryRun: true}
	refused := data[orderData](b.t, b.guest.do("hostr.orders.review", input))
	if refused.Reason != "review_invalid" || refused.WillPublish == nil || *refused.WillPublish {
		b.t.Errorf("the review of a stay that nobody confirmed: %+v", refused)
	}
	input.DryRun = false
	if failed := failure(b.t, b.guest.do("hostr.orders.review", input)); failed.Code != "review_invalid" {
		b.t.Errorf("the review of a stay that nobody confirmed: %+v", failed)
	}
}

// strangers publish orders with the trade's id and send forged messages, and the escrow
// confirms. Once that has come, which is genuine and later, so has the rest.
func (b *booking) strangers() {
	for _, party := range b.parties() {
		party.updates()
	}
	stranger := b.home.market.Guests[1]
	other := newOtherClient(b.t, b.home.market.RelayURL, stranger.PrivateKey)
	order := decodeOrder(b.t, b.commit)
	for _, stage := range []hostr.Stage{hostr.StageCancel, hostr.StageCommit} {
		content := order.OrderContent
		content.Stage = stage
		for _, key := range []string{stranger.PrivateKey, nostr.GeneratePrivateKey()} {
			other.publish(key, &nostr.Event{Kind: hostr.KindOrder, CreatedAt: nostr.Now() + 5, Tags: b.commit.Tags, Content: content.Encode()})
		}
	}
	texts, orders := b.forge(other)
	b.confirmation = b.confirm(b.commit)

	b.shows(b.first, 1, b.commit, b.confirmation)
	want := eventIDs([]*nostr.Event{b.commit, b.confirmation})
	for side, p := range b.sides() {
		found := data[lookupData](b.t, p.do("hostr."+side+".list", lookupInput{TradeID: b.first}))
		cancel := data[orderData](b.t, p.do("hostr.orders.cancel", tradeInput{TradeID: b.first, DryRun: true}))
		if !slices.Equal(idsOf(found.Orders), want) || !slices.Equal(idsOf(cancel.OrderGroup), want) || cancel.Mode != "committed" {
			b.t.Errorf("strangers have changed the trade of the %s: %v, %+v", p.Role, idsOf(found.Orders), cancel)
		}
		b.isUnmoved(p, texts, orders)
	}
	b.afterNewest(b.first, b.guest, b.host)
	b.message(b.host, messageInput{TradeID: b.first, RecipientRole: "guest"}, b.guest)
	b.message(b.guest, messageInput{TradeID: b.first, RecipientRole: "host"}, b.host)
}

// forge sends messages that only look like the other side's, then one that is what it
// seems to be. It returns the texts and the orders that must not count.
func (b *booking) forge(other *otherClient) (texts, orders []string) {
	b.t.Helper()
	me := publicKeyOf(b.t, other.key)
	cheap := b.agreed.OrderContent
	amount := money.Satoshis(1)
	cheap.Amount = &amount
	for _, p := range b.sides() {
		claimed := others(p, []*party{b.guest, b.host})[0]
		tags := nostr.Tags{{"conversation", b.first}, {"p", p.PublicKey}}
		text := rumorOf(claimed, hostr.KindTextMessage, "Forged: pay somebody else.", tags)
		wrongID := rumorOf(claimed, hostr.KindTextMessage, "Forged: an id of another text.", tags)
		wrongID.Content += "!"
		rumors := []*nostr.Event{text, wrongID}
		texts = append(texts, text.Content, wrongID.Content)
		authors := []string{b.host.PublicKey}
		if p == b.guest {
			authors = append(authors, b.agreed.Event.PubKey)
		}
		for _, author := range authors {
			child := rumorOf(author, hostr.KindOrder, cheap.Encode(), b.agreed.Event.Tags)
			rumors = append(rumors, rumorOf(me, hostr.KindStructuredMessage, hostr.EncodeEmbeddedEvent(child), tags))
			orders = append(orders, child.ID)
		}
		for _, rumor := range rumors {
			other.wrap(rumor, p.PublicKey)
		}
		genuine := rumorOf(me, hostr.KindTextMessage, "Genuine words.", nostr.Tags{{"p", p.PublicKey}})
		other.wrap(genuine, p.PublicKey)
		b.eventually("the "+string(p.Role)+" has the stranger's message", func() bool {
			return strings.Contains(string(p.do("hostr.updates", emptyInput{}).Data), genuine.ID)
		})
	}
	return texts, orders
}

// isUnmoved checks that forged texts and orders count for nothing.
func (b *booking) isUnmoved(p *party, texts, orders []string) {
	b.t.Helper()
	envelope := p.do("hostr.updates", emptyInput{})
	for _, text := range texts {
		if strings.Contains(string(envelope.Data), text) {
			b.t.Errorf("the %s is shown %q", p.Role, text)
		}
	}
	for _, thread := range data[updatesData](b.t, envelope).Threads {
		for _, request := range thread.OrderRequests {
			if slices.Contains(orders, request.ID) {
				b.t.Errorf("the %s is shown a forged order in %+v", p.Role, thread.CounterpartyPubkeys)
			}
		}
	}
	accepted := data[orderData](b.t, p.do("hostr.orders.negotiateAccept", tradeInput{TradeID: b.first, DryRun: true}))
	if order := decodeOrder(b.t, accepted.Event.event()); order.Amount.Result().SmallestUnitValue != agreedSats ||
		!slices.Equal(accepted.RecipientPubkeys, others(p, []*party{b.guest, b.host})) {
		b.t.Errorf("the %s would accept %+v", p.Role, accepted)
	}
}

func (b *booking) review() {
	input := reviewInput{TradeID: b.first, Rating: 4, Content: reviewed, DryRun: true}
	filter := nostr.Filter{Kinds: []int{hostr.KindReview}}
	preview := data[orderData](b.t, b.guest.do("hostr.orders.review", input))
	if preview.WillPublish == nil || !*preview.WillPublish || preview.Event == nil || preview.Event.Sig != nil || len(b.onRelay(filter)) != 0 {
		b.t.Fatalf("the preview of a review: %+v", preview)
	}
	input.DryRun = false
	written := data[orderData](b.t, b.guest.do("hostr.orders.review", input))
	if written.Event == nil || !hostr.IsSigned(written.Event.event()) || written.Event.PubKey != b.guest.PublicKey || len(b.onRelay(filter)) != 1 {
		b.t.Fatalf("the review: %+v", written)
	}
	b.eventually("the host sees the review", func() bool {
		for _, listing := range b.host.updates().ListingReviews {
			if listing.Anchor == b.place.anchor && len(listing.Reviews) == 1 && cmp.Equal(listing.Reviews[0], *written.Event) {
				return true
			}
		}
		return false
	})
	if failed := failure(b.t, b.host.do("hostr.orders.review", input)); failed.Code != "unexpected_error" {
		b.t.Errorf("a review by the host: %+v", failed)
	}
}

func (b *booking) onRelay(filter nostr.Filter) []nostr.Event {
	b.t.Helper()
	found, err := b.home.market.Relay.Query(within(b.t), filter)
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func (b *booking) bookAnother() {
	sent := b.begin(stayOf(1))
	b.second = sent.TradeID
	if b.second == b.first {
		b.t.Error("two trades have one id")
	}
	taken := failure(b.t, b.guest.do("hostr.orders.negotiateOffer", b.offer(stayOf(0), true)))
	if taken.Code != "listing_unavailable" {
		b.t.Errorf("days that are booked: %+v", taken)
	}
	b.secondCommit = b.book(decodeOrder(b.t, sent.Event.event()))
	b.shows(b.second, 2, b.secondCommit)
	b.shows(b.first, 2, b.commit, b.confirmation)
}

// cancelPublicly previews and publishes a cancellation.
func (b *booking) cancelPublicly(by *party, tradeID string) *nostr.Event {
	b.t.Helper()
	filter := nostr.Filter{Kinds: []int{hostr.KindOrder}, Tags: nostr.TagMap{"d": {tradeID}}}
	before := eventIDs(pointersTo(b.onRelay(filter)))
	preview := data[orderData](b.t, by.do("hostr.orders.cancel", tradeInput{TradeID: tradeID, DryRun: true}))
	if preview.Mode != "committed" || preview.WillPublish == nil || !*preview.WillPublish || len(preview.OrderGroup) == 0 {
		b.t.Errorf("the preview of a cancellation: %+v", preview)
	}
	if !slices.Equal(eventIDs(pointersTo(b.onRelay(filter))), before) {
		b.t.Error("the preview changed what is on the relay")
	}
	done := data[orderData](b.t, by.do("hostr.orders.cancel", tradeInput{TradeID: tradeID}))
	if done.Mode != "committed" || done.Event == nil || !hostr.IsSigned(done.Event.event()) {
		b.t.Fatalf("the cancellation: %+v", done)
	}
	transitions := b.onRelay(nostr.Filter{Kinds: []int{hostr.KindOrderTransition}, Authors: []string{done.Event.PubKey}, Tags: nostr.TagMap{"d": {tradeID}}})
	if !slices.ContainsFunc(transitions, func(event nostr.Event) bool { return event.Tags.Find("e")[1] == done.Event.ID }) {
		b.t.Errorf("no transition records the cancellation: %v", transitions)
	}
	return done.Event.event()
}

func pointersTo(events []nostr.Event) (pointers []*nostr.Event) {
	for i := range events {
		pointers = append(pointers, &events[i])
	}
	return pointers
}

func (b *booking) hostCancels() {
	cancelled := b.cancelPublicly(b.host, b.first)
	if cancelled.PubKey != b.host.PublicKey {
		b.t.Errorf("cancelled by %s", cancelled.PubKey)
	}
	b.shows(b.first, 2, b.commit, b.confirmation, cancelled)
	b.shows(b.second, 2, b.secondCommit)
	for _, party := range b.sides() {
		if failed := failure(b.t, party.do("hostr.orders.cancel", tradeInput{TradeID: b.first})); failed.Code != "already_cancelled" {
			b.t.Errorf("cancelled once more by the %s: %+v", party.Role, failed)
		}
	}
}

func (b *booking) guestCancels() {
	cancelled := b.cancelPublicly(b.guest, b.second)
	if cancelled.PubKey != b.secondCommit.PubKey {
		b.t.Errorf("cancelled by %s", cancelled.PubKey)
	}
	b.shows(b.second, 2, cancelled)
	// Nothing committed is left: a cancellation now would end the negotiation (spec 51 §5).
	for _, party := range b.sides() {
		if again := data[orderData](b.t, party.do("hostr.orders.cancel", tradeInput{TradeID: b.second, DryRun: true})); again.Mode != "negotiation" {
			b.t.Errorf("cancelled once more by the %s: %+v", party.Role, again)
		}
	}
}

// endNegotiation has the host end a negotiation, the guest offer anew and end it too.
func (b *booking) endNegotiation() {
	b.third = b.begin(stayOf(2)).TradeID
	if b.third == b.first || b.third == b.second {
		b.t.Error("a trade id comes again")
	}
	cancel := func(dryRun bool) any { return tradeInput{TradeID: b.third, DryRun: dryRun} }
	ended := b.answer(b.host, b.guest, "hostr.orders.cancel", cancel)
	b.has(b.guest, b.third, *ended.Event, 2)
	if failed := failure(b.t, b.guest.do("hostr.orders.cancel", cancel(true))); failed.Code != "already_cancelled" {
		b.t.Errorf("cancelled twice: %+v", failed)
	}
	const secretSats, secretValue = "18887712345", "188.87712345"
	b.said = append(b.said, secretValue) // an offer is a private message as well
	again := b.answer(b.guest, b.host, "hostr.orders.negotiateOffer", func(dryRun bool) any {
		return offerInput{TradeID: b.third, Amount: sats(secretSats), DryRun: dryRun}
	})
	b.has(b.host, b.third, *again.Event, 3)
	ended = b.answer(b.guest, b.host, "hostr.orders.cancel", cancel)
	b.has(b.host, b.third, *ended.Event, 4)
	if ended.Mode != "negotiation" || decodeOrder(b.t, ended.Event.event()).Stage != hostr.StageCancel {
		b.t.Errorf("the end of a negotiation: %+v", ended)
	}
	if public := b.onRelay(nostr.Filter{Kinds: []int{hostr.KindOrder, hostr.KindOrderTransition}, Tags: nostr.TagMap{"d": {b.third}}}); len(public) != 0 {
		b.t.Errorf("a negotiation is public: %v", public)
	}
}

func publicKeyOf(t *testing.T, key string) string {
	t.Helper()
	public, err := nostr.GetPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return public
}
