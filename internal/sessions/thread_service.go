package sessions

import (
	"context"
	"time"

	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/threads"
	"hostr-daemon/internal/trades"
)

// threadService works on the account's conversations.
func threadService(account *Account, services *Services, messages *inbox.Service, followed *trades.Service) *threads.Service {
	return threads.New(threads.Config{
		Me:     account.pubkey,
		Inbox:  messages,
		Trades: threadTrades{followed},
		Relays: services.relays,
		Send: func(ctx context.Context, draft market.MessageDraft) (market.Rumor, error) {
			sent, err := services.sends.send(ctx, draft)
			return sent.Rumor, err
		},
		Profile: services.Profiles.Shown,
	})
}

// threadTrades is the trades as conversations need them.
type threadTrades struct{ *trades.Service }

// Trips implements threads.Trades.
func (t threadTrades) Trips(ctx context.Context, limit time.Duration) ([]market.TradeItem, error) {
	list, err := t.Service.Trips(ctx, limit)
	return tradeItems(list), err
}

// Bookings implements threads.Trades.
func (t threadTrades) Bookings(ctx context.Context, limit time.Duration) ([]market.TradeItem, error) {
	list, err := t.Service.Hostings(ctx, limit)
	return tradeItems(list), err
}

// Resolve implements threads.Trades.
func (t threadTrades) Resolve(ctx context.Context, tradeID string, limit time.Duration) (threads.TradePeople, error) {
	found, err := t.Service.ResolveTrade(ctx, tradeID, limit)
	return threads.TradePeople{
		Seller: found.Seller, Buyer: found.Buyer, Escrow: found.Escrow, Participants: found.Participants,
	}, err
}

func tradeItems(list trades.List) []market.TradeItem {
	items := make([]market.TradeItem, len(list.Items))
	for i, item := range list.Items {
		items[i] = market.TradeItem{Group: item.Group, Valid: item.Verification.Valid, Participants: item.Participants}
	}
	return items
}
