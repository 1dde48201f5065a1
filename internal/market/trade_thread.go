package market

import (
	"slices"

	"github.com/nbd-wtf/go-nostr"
)

// TradeThread is the private side of a trade (spec 50 §18).
type TradeThread struct {
	// Thread is nil when nobody has sent an order that counts.
	Thread *Thread
	// Requests are the trade's orders in the Thread by the time of their messages. They are
	// all about listings of one owner.
	Requests []OrderRequest
	// Ours is true when the account has sent one of them: then it has chosen this thread.
	Ours bool
	// Disputed is true when several people have sent orders under the trade's id, and
	// nothing tells which of them is its guest.
	Disputed bool
}

// TradeThread returns the private side of a trade: of the threads with its id as tag the
// last created that holds an order of it which counts. Whoever has seen a public order
// knows the id, so these come first: threads that the account itself has sent an order
// in, then those between the parties that the public orders name, then those with an
// order for a listing of the recorded seller (spec 60 §8.3). The parties are nil while
// they are not known.
func (t *Threads) TradeThread(tradeID string, parties []string) TradeThread {
	accepted := t.ofTrade(tradeID, parties)
	among := accepted.own
	if len(among) == 0 {
		among = accepted.others
	}
	var found TradeThread
	var senders []string
	for _, thread := range among {
		requests := thread.requestsOf(tradeID, accepted.seller)
		if len(requests) == 0 {
			continue
		}
		found.Thread, found.Requests = thread, requests
		for _, request := range requests {
			if sender := request.Rumor.Event.PubKey; sender != t.me {
				senders = append(senders, sender)
			}
		}
	}
	found.Ours = len(accepted.own) > 0
	found.Disputed = !found.Ours && !accepted.certain && len(sortedUnique(senders)) > 1
	return found
}

// Recipients returns who gets the account's orders in a trade for a listing of the owner:
// the other party alone, whoever else a message has named. For a guest that is the owner,
// for the owner whoever has sent orders here; in a thread without any of others, all.
func (f TradeThread) Recipients(me, owner string) []string {
	if f.Thread == nil {
		return nil
	}
	parties := []string{owner}
	if owner == me {
		parties = nil
		for _, request := range f.Requests {
			parties = append(parties, request.Rumor.Event.PubKey)
		}
	}
	parties = filter(without(sortedUnique(parties), me), nostr.IsValidPublicKey)
	if len(parties) == 0 {
		return f.Thread.Recipients()
	}
	return parties
}

// ByTurn returns the orders of a negotiation as they count at a time, the newest last:
// those that are, or whose messages are, dated more than a minute ahead come before all
// others, which otherwise keep their order. So nobody can have the last word for years by
// a date. The time of receipt would tell better who came last, but it is another on each
// side and after each restart; the clock is about the same everywhere.
func ByTurn(requests []OrderRequest, now nostr.Timestamp) (ordered []OrderRequest, ahead int) {
	isAhead := func(request OrderRequest) bool {
		return request.Rumor.Event.CreatedAt > now+maxLead || request.Order.Event.CreatedAt > now+maxLead
	}
	ordered = filter(requests, isAhead)
	ahead = len(ordered)
	return append(ordered, filter(requests, func(request OrderRequest) bool { return !isAhead(request) })...), ahead
}

// tradeThreads are the threads of a trade that strangers have not made, as far as that
// can be told, in order of creation.
type tradeThreads struct {
	// own are those that the account has sent an order of the trade in.
	own, others []*Thread
	// seller is the owner of the listing, "" when no order tells.
	seller string
	// certain is true when others are between the parties that public orders name.
	certain bool
}

func (t *Threads) ofTrade(tradeID string, parties []string) tradeThreads {
	tagged := t.tagged(tradeID)
	isOwn := func(thread *Thread) bool { return len(thread.ownOwners(tradeID, t.me)) > 0 }
	isBetween := func(thread *Thread) bool { return thread.isBetween(parties) }
	found := tradeThreads{own: filter(tagged, isOwn)}
	// What we have sent ourselves is known for sure: others must agree with it.
	if len(found.own) == 0 || slices.ContainsFunc(found.own, isBetween) {
		found.others = filter(tagged, func(thread *Thread) bool { return !isOwn(thread) && isBetween(thread) })
		found.certain = len(found.others) > 0
	}
	found.seller = t.recordedSeller(tradeID, found)
	if len(found.own) == 0 && !found.certain {
		found.others = filter(tagged, func(thread *Thread) bool { return len(thread.requestsOf(tradeID, found.seller)) > 0 })
	}
	return found
}

func (f tradeThreads) holds(thread *Thread) bool {
	return slices.Contains(f.own, thread) || slices.Contains(f.others, thread)
}

// recordedSeller returns whose listing a trade is about: we say so ourselves first, then
// those who want to book with us, then whoever wrote first (spec 60 §8.3).
func (t *Threads) recordedSeller(tradeID string, known tradeThreads) string {
	for _, thread := range known.own {
		return thread.ownOwners(tradeID, t.me)[0]
	}
	among := known.others
	if !known.certain {
		among = t.tagged(tradeID)
	}
	seller := ""
	for _, thread := range among {
		for _, request := range thread.orderRequests {
			owner := ownerOf(request)
			if request.Order.TradeID == tradeID && (seller == "" || owner == t.me) {
				seller = owner
			}
		}
	}
	return seller
}

// requestsOf returns the orders of a trade for listings of the seller.
func (t *Thread) requestsOf(tradeID, seller string) []OrderRequest {
	return filter(t.orderRequests, func(request OrderRequest) bool {
		return request.Order.TradeID == tradeID && ownerOf(request) == seller
	})
}

// ownOwners returns whose listings the orders of a trade are about that the account has
// sent here, the last one first.
func (t *Thread) ownOwners(tradeID, me string) (owners []string) {
	for _, request := range slices.Backward(t.orderRequests) {
		if owner := ownerOf(request); owner != "" && request.Order.TradeID == tradeID && request.Rumor.Event.PubKey == me {
			owners = append(owners, owner)
		}
	}
	return owners
}

// isBetween reports whether nobody but these takes part.
func (t *Thread) isBetween(parties []string) bool {
	return !slices.ContainsFunc(t.Participants, func(pubkey string) bool { return !slices.Contains(parties, pubkey) })
}

func ownerOf(request OrderRequest) string {
	listing, _ := request.Order.Listing()
	return listing.PubKey
}

func filter[T any](all []T, keeps func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !keeps(one) })
}
