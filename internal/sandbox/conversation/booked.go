package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hostr-daemon/internal/sandbox"
)

// What guest and host say to each other, and to the escrow.
const (
	question  = "May we come at ten in the evening? The bus is late."
	reply     = "Of course. The key hangs behind the *blue* pot."
	complaint = "The host and I cannot agree on the deposit. Would you look at it?"
)

// talk has each side say something that the other sees.
func (b *bargain) talk(ctx context.Context, t *talk) bool {
	asked := map[string]any{"tradeId": b.tradeID, "recipientRole": "host", "content": question}
	answered := map[string]any{"tradeId": b.tradeID, "recipientRole": "guest", "content": reply}
	// By then the host has had two orders, the guest one.
	return b.say(ctx, t, b.guest, b.host, asked, 3) && b.say(ctx, t, b.host, b.guest, answered, 2)
}

// say previews and sends a message; the other side then has so many unread ones.
func (b *bargain) say(ctx context.Context, t *talk, from, to sandbox.Person, input map[string]any, unread int) bool {
	before := b.wraps(ctx, t)
	var preview, sent Said
	if !t.write(ctx, from, "hostr.thread.message", input, true, &preview) {
		return false
	}
	t.check(preview.DryRun && preview.Content == input["content"] && preview.SentMessage == nil &&
		slices.Equal(preview.RecipientPubkeys, []string{to.PublicKey}) && b.wraps(ctx, t) == before,
		fmt.Sprintf("the preview would go to the %s, and sent nothing", to.Role), fmt.Sprintf("%+v", preview))
	if !t.write(ctx, from, "hostr.thread.message", input, false, &sent) || sent.SentMessage == nil {
		t.bad("the message was not sent")
		return false
	}
	view, seen := b.reads(ctx, t, to, []sandbox.Person{from}, *sent.SentMessage)
	t.check(seen, fmt.Sprintf("the %s reads it: %s says “%s”", to.Role, shownName(from), input["content"]), fmt.Sprintf("%+v", view.Messages))
	t.check(view.UnreadCount == unread, fmt.Sprintf("%d are unread, with the offers", unread), strconv.Itoa(view.UnreadCount))
	return seen
}

// reads waits until a message is the newest of somebody's conversation with others.
func (b *bargain) reads(ctx context.Context, t *talk, reader sandbox.Person, others []sandbox.Person, sent Message) (ThreadView, bool) {
	input := map[string]any{"tradeId": b.tradeID, "recipientPubkeys": pubkeysOf(others)}
	viewed, seen := sight(ctx, t, reader.PublicKey, "hostr.thread.view", input, func(viewed Viewed) bool {
		messages := viewed.ThreadView.Messages
		if len(messages) == 0 {
			return false
		}
		last := messages[len(messages)-1]
		return last.ID == sent.ID && last.Content == sent.Content && last.SenderPubkey == sent.SenderPubkey && !last.SentByUser
	})
	return viewed.ThreadView, seen
}

func (b *bargain) book(ctx context.Context, t *talk) bool {
	program := payingProgram{market: b.market, guest: b.guest, listing: b.listing}
	order, err := program.book(ctx, b.orders[len(b.orders)-1])
	if err != nil {
		t.bad("the other program could not book: %v", err)
		return false
	}
	t.check(order.PubKey == b.orders[0].PubKey, "the seed on the relay leads another program to the same key", order.PubKey)
	trip, known := b.isListed(ctx, t, b.guest, "trips", false)
	booking, hosted := b.isListed(ctx, t, b.host, "bookings", false)
	if !known || !hosted {
		return false
	}
	for _, side := range []struct {
		person sandbox.Person
		item   TradeItem
	}{{b.guest, trip}, {b.host, booking}} {
		difference := b.compareRoles(side.item)
		t.check(difference == "", fmt.Sprintf("the %s knows who is who in it", side.person.Role), difference)
	}
	b.checkDays(ctx, t, false)
	return true
}

// isListed waits until the trade, and no other, is in somebody's list.
func (b *bargain) isListed(ctx context.Context, t *talk, person sandbox.Person, mode string, cancelled bool) (TradeItem, bool) {
	var item TradeItem
	list, seen := sight(ctx, t, person.PublicKey, "hostr."+mode+".list", map[string]any{"limit": 200}, func(list TradeList) bool {
		at := slices.IndexFunc(list.Results, func(item TradeItem) bool { return item.TradeID == b.tradeID })
		if at < 0 {
			return false
		}
		item = list.Results[at]
		return item.Group.Cancelled == cancelled
	})
	difference := b.compareTrade(item, mode, cancelled)
	if list.Mode != mode || list.Count != 1 || len(list.Results) != 1 || list.InvalidCount != 0 {
		difference = fmt.Sprintf("mode %q, count %d, %d results, %d invalid", list.Mode, list.Count, len(list.Results), list.InvalidCount)
	}
	state := "the stay"
	if cancelled {
		state = "the cancelled stay"
	}
	t.check(seen && difference == "", fmt.Sprintf("the %s of the %s show %s: %s, %s to %s", mode, person.Role, state,
		b.listing.Title, b.start.Format(time.DateOnly), b.end.Format(time.DateOnly)), difference)
	return item, seen && difference == ""
}

func (b *bargain) compareTrade(got TradeItem, mode string, cancelled bool) string {
	stage := "commit"
	if cancelled {
		stage = "cancel"
	}
	for _, field := range []struct{ name, got, want string }{
		{"found", fmt.Sprint(got.Found), "true"},
		{"valid", fmt.Sprint(got.Valid), "true"},
		{"mode", got.Mode, mode},
		{"listingTitle", got.Group.ListingTitle, b.listing.Title},
		{"stage", got.Group.Stage, stage},
		{"cancelled", fmt.Sprint(got.Group.Cancelled), fmt.Sprint(cancelled)},
		{"active", fmt.Sprint(got.Group.Active), fmt.Sprint(!cancelled)},
		{"start", got.Group.Start, instant(b.start)},
		{"end", got.Group.End, instant(b.end)},
		{"buyerPubkey", got.Group.BuyerPubkey, b.orders[0].PubKey},
	} {
		if field.got != field.want {
			return fmt.Sprintf("%s is %q instead of %q", field.name, field.got, field.want)
		}
	}
	return ""
}

// compareRoles wants the people behind the keys.
func (b *bargain) compareRoles(got TradeItem) string {
	for role, person := range b.roles() {
		profile := got.Participants.Profiles[role]
		if got.Participants.Roles[role] != person.PublicKey || profile.Pubkey != person.PublicKey || profile.Name != shownName(person) {
			return fmt.Sprintf("the %s is %q (%s)", role, profile.Name, shortID(got.Participants.Roles[role]))
		}
	}
	return ""
}

// shownName is what the profile of somebody says: the display name, else the name (spec
// 51 §2.8).
func shownName(person sandbox.Person) string {
	var content struct {
		Name        string `json:"name"`
		DisplayName string `json:"display_name"`
	}
	if person.Profile == nil || json.Unmarshal([]byte(person.Profile.Content), &content) != nil {
		return shortID(person.PublicKey) + "..."
	}
	return cmp.Or(content.DisplayName, content.Name)
}

func (b *bargain) roles() map[string]sandbox.Person {
	return map[string]sandbox.Person{"buyer": b.guest, "seller": b.host, "escrow": b.escrow}
}

// checkDays asks whether the days of the stay are free.
func (b *bargain) checkDays(ctx context.Context, t *talk, free bool) {
	input := map[string]any{"anchors": []string{b.listing.Anchor}, "start": b.start.Format(time.DateOnly), "end": b.end.Format(time.DateOnly)}
	var found Availability
	if !t.succeedAs(ctx, b.escrow.PublicKey, "hostr.listings.availability", input, &found) {
		return
	}
	claim := "the days are taken for everybody else"
	if free {
		claim = "the days are free again"
	}
	t.check(len(found.Results) == 1 && found.Results[0].Found && found.Results[0].Available == free, claim, fmt.Sprintf("%+v", found.Results))
}

func (b *bargain) involve(ctx context.Context, t *talk) bool {
	const action = "hostr.escrow.involve"
	before := b.wraps(ctx, t)
	var empty, preview, sent Said
	input := map[string]any{"tradeId": b.tradeID}
	if !t.write(ctx, b.guest, action, input, true, &empty) {
		return false
	}
	t.check(empty.RequiresMessage && empty.DryRun, "without words it asks what to say", fmt.Sprintf("%+v", empty))
	input["content"] = complaint
	if !t.write(ctx, b.guest, action, input, true, &preview) {
		return false
	}
	right := preview.DryRun && preview.Content == complaint && slices.Equal(preview.RecipientPubkeys, pubkeysOf([]sandbox.Person{b.host, b.escrow}))
	t.check(right && b.wraps(ctx, t) == before, "the preview would go to the host and the escrow, and sent nothing", fmt.Sprintf("%+v", preview))
	if !t.write(ctx, b.guest, action, input, false, &sent) || sent.SentMessage == nil {
		t.bad("the message was not sent")
		return false
	}
	for _, reader := range []sandbox.Person{b.escrow, b.host} {
		others := slices.DeleteFunc(b.people(), func(p sandbox.Person) bool { return p.PublicKey == reader.PublicKey })
		view, seen := b.reads(ctx, t, reader, others, *sent.SentMessage)
		t.check(seen && view.UnreadCount == 1, fmt.Sprintf("the %s reads it: %s says “%s”", reader.Role, shownName(b.guest), complaint),
			fmt.Sprintf("%d unread, %+v", view.UnreadCount, view.Messages))
	}
	return b.escrowKnows(ctx, t)
}

// escrowKnows has the operator ask who is who.
func (b *bargain) escrowKnows(ctx context.Context, t *talk) bool {
	var seen Said
	if !t.write(ctx, b.escrow, "hostr.escrow.involve", map[string]any{"tradeId": b.tradeID}, true, &seen) {
		return false
	}
	var wrong []string
	for role, person := range b.roles() {
		if seen.Roles[role] != person.PublicKey {
			wrong = append(wrong, fmt.Sprintf("the %s is %q", role, shortID(seen.Roles[role])))
		}
	}
	t.check(len(wrong) == 0, "the escrow knows who is buyer and who is seller", strings.Join(wrong, ", "))
	return true
}

func (b *bargain) cancel(ctx context.Context, t *talk) bool {
	const action = "hostr.orders.cancel"
	input := map[string]any{"tradeId": b.tradeID}
	preview, ok := b.write(ctx, t, b.host, action, input, true)
	if !ok {
		return false
	}
	t.check(preview.Mode == "committed" && preview.WillPublish && len(preview.OrderGroup) == 1 && len(b.public(ctx, t)) == 1,
		"the preview would cancel the booking in public, and published nothing", fmt.Sprintf("%+v", preview))
	done, ok := b.write(ctx, t, b.host, action, input, false)
	if !ok {
		return false
	}
	stored := b.public(ctx, t)
	published := done.Event != nil && genuine(done.Event.event()) && done.Event.PubKey == b.host.PublicKey && done.Event.terms().Stage == "cancel" &&
		slices.Contains(strings.Fields(seededIDs(stored)), done.Event.ID)
	t.check(published, "the relay has the cancellation, signed by the host", fmt.Sprintf("%+v, %d stored", done.Event, len(stored)))
	b.isListed(ctx, t, b.guest, "trips", true)
	b.isListed(ctx, t, b.host, "bookings", true)
	request, ok := t.send("callAction", ActionParams{Action: action, Pubkey: b.guest.PublicKey, Input: input})
	if !ok {
		return false
	}
	if envelope, ok := t.envelope(ctx, request, action); ok {
		t.refused(envelope, "already_cancelled", "")
	}
	b.checkDays(ctx, t, true)
	return true
}
