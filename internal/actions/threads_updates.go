package actions

import (
	"context"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sessions"
	"hostr-daemon/internal/threads"
)

// UpdatesResult is the result of hostr.updates (spec 60 §10.7).
type UpdatesResult struct {
	// Count is how many messages there are of any kind, Events holds the first of them in
	// order of arrival.
	Count  int                `json:"count"`
	Events []market.EventJSON `json:"events"`
	// Profiles are the counterparties of all threads, by pubkey.
	Profiles threads.People  `json:"profiles"`
	Threads  []UpdatesThread `json:"threads"`
	// ListingReviewCount is how many reviews the listings in ListingReviews have.
	ListingReviewCount int                     `json:"listingReviewCount"`
	ListingReviews     []UpdatesReviews        `json:"listingReviews"`
	TripCount          int                     `json:"tripCount"`
	Trips              []market.CollectionItem `json:"trips"`
	BookingCount       int                     `json:"bookingCount"`
	Bookings           []market.CollectionItem `json:"bookings"`
}

// UpdatesThread is a thread in UpdatesResult (spec 60 §10.8).
type UpdatesThread struct {
	Anchor string `json:"anchor"`
	// Conversation is the thread's tag, which may be empty.
	Conversation        string   `json:"conversation"`
	ParticipantPubkeys  []string `json:"participantPubkeys"`
	CounterpartyPubkeys []string `json:"counterpartyPubkeys"`
	// Counterparties are all but the account, by pubkey.
	Counterparties []market.ProfileSummary `json:"counterparties"`
	UnreadCount    int                     `json:"unreadCount"`
	// OrderRequests are the orders sent here. TextMessages and Events are messages, not
	// signed.
	OrderRequests []market.EventJSON `json:"orderRequests"`
	TextMessages  []market.EventJSON `json:"textMessages"`
	Events        []market.EventJSON `json:"events"`
}

// UpdatesReviews are the reviews of one listing of the account, unverified.
type UpdatesReviews struct {
	Listing market.ListingSummary `json:"listing"`
	Anchor  string                `json:"anchor"`
	// Count is how many there are, Reviews holds no more than the limit.
	Count   int                `json:"count"`
	Reviews []market.EventJSON `json:"reviews"`
}

func updates(ctx context.Context, caller caller, account *sessions.Account, input UpdatesInput) (answer[UpdatesResult], error) {
	service, err := followedThreads(ctx, caller, account, input.TimeoutSeconds)
	if err != nil {
		return answer[UpdatesResult]{}, err
	}
	found, err := service.Updates(ctx, input.Limit, seconds(input.TimeoutSeconds))
	if err != nil {
		return answer[UpdatesResult]{}, err
	}
	budget := sizeBudget{left: updatesSize}
	events, spent := budget.part(updatesSize / 4)
	result := UpdatesResult{
		Count:          len(found.Inbox),
		Events:         firstFitting(events, rumorEvents(found.Inbox[:min(len(found.Inbox), input.Limit)])),
		Profiles:       threads.People{},
		ListingReviews: make([]UpdatesReviews, 0, len(found.Reviews.Listings)),
		Trips:          collectionItems(found.Trips, market.Trips, found.People),
		TripCount:      len(found.Trips),
		Bookings:       collectionItems(found.Bookings, market.Bookings, found.People),
		BookingCount:   len(found.Bookings),
	}
	spent()
	conversations, spent := budget.part(updatesSize / 2)
	result.Threads = fittingThreads(conversations, found.Threads, found.People, account.Pubkey(), nostr.Now())
	spent()
	for _, thread := range result.Threads {
		for _, pubkey := range thread.CounterpartyPubkeys {
			result.Profiles[pubkey] = found.People.One(pubkey)
		}
	}
	for _, reviewed := range found.Reviews.Listings {
		reviews := newUpdatesReviews(reviewed, input.Limit)
		reviews.Reviews = firstFitting(&budget, reviews.Reviews)
		result.ListingReviews = append(result.ListingReviews, reviews)
		result.ListingReviewCount += reviews.Count
	}
	return answer[UpdatesResult]{data: result, warnings: append(warnings(found.Reviews.Warning), warnings(tooLarge(budget.cut))...)}, nil
}

func newUpdatesThread(thread *market.Thread, people threads.People) UpdatesThread {
	return UpdatesThread{
		Anchor: thread.Anchor, Conversation: thread.Tag,
		ParticipantPubkeys: thread.Participants, CounterpartyPubkeys: thread.Counterparties,
		Counterparties: people.Of(thread.Counterparties), UnreadCount: thread.Unread(),
		OrderRequests: requestEvents(thread), TextMessages: rumorEvents(thread.TextMessages()), Events: rumorEvents(thread.Events()),
	}
}

func newUpdatesReviews(reviewed threads.ReviewedListing, limit int) UpdatesReviews {
	reviews := UpdatesReviews{
		Listing: reviewed.Listing.Summary(), Anchor: reviewed.Anchor, Count: len(reviewed.Reviews), Reviews: []market.EventJSON{},
	}
	for _, event := range reviewed.Reviews[:min(len(reviewed.Reviews), limit)] {
		reviews.Reviews = append(reviews.Reviews, market.NewEventJSON(event))
	}
	return reviews
}

func collectionItems(items []market.TradeItem, mode market.CollectionMode, people threads.People) []market.CollectionItem {
	shown := make([]market.CollectionItem, len(items))
	for i, item := range items {
		shown[i] = item.Result(mode, people.One)
	}
	return shown
}

func rumorEvents(rumors []market.Rumor) []market.EventJSON {
	events := make([]market.EventJSON, len(rumors))
	for i, rumor := range rumors {
		events[i] = market.NewEventJSON(rumor.Event)
	}
	return events
}
