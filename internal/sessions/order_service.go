package sessions

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/orders"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/relaylists"
	"hostr-daemon/internal/store"
	"hostr-daemon/internal/trades"
)

// Operations keeps what must outlive the process.
type Operations interface {
	PutOperation(ctx context.Context, pubkey string, operation store.Operation) error
}

// orderParts is what the order service works on beside the account's other services.
type orderParts struct {
	inbox      orderInbox
	trades     *trades.Service
	operations Operations
	// payments is nil where no chain can be asked.
	payments orders.PaymentVerifier
}

// orderService acts in the account's trades through its other services.
func (c *Config) orderService(account *Account, services *Services, parts orderParts) *orders.Service {
	return orders.New(orders.Config{
		Relays:   services.relays,
		Account:  account.holder,
		Inbox:    parts.inbox,
		Trades:   orderTrades{parts.trades},
		Listings: orderListings{services.Listings},
		People:   orderPeople{services.Profiles, services.RelayLists},
		Records:  orderRecords{parts.operations, account.pubkey},
		Payments: parts.payments,
		SeedReady: func(ctx context.Context) error {
			_, err := services.Seeds.Keys(ctx)
			return err
		},
		Now:    c.Now,
		Logger: c.Logger,
	})
}

// orderInbox is the inbox as the order service needs it.
type orderInbox struct {
	*inbox.Service
	sends *begunSends
}

// Send implements orders.Inbox.
func (i orderInbox) Send(ctx context.Context, draft market.MessageDraft) ([]relay.Receipt, error) {
	sent, err := i.sends.send(ctx, draft)
	return sent.Receipts, err
}

// orderTrades is the trades as the order service needs them.
type orderTrades struct{ *trades.Service }

// Reserve implements orders.Trades.
func (t orderTrades) Reserve(ctx context.Context, persist bool) (orders.TradeKey, error) {
	keys, err := t.Service.Reserve(ctx, persist)
	return orders.TradeKey{TradeID: keys.TradeID, Key: keys.Key}, err
}

// Release gives a reserved trade account back of which nothing has left.
func (t orderTrades) Release(key orders.TradeKey) {
	t.Service.Release(trades.TradeKeys{TradeID: key.TradeID})
}

// OwnKey implements orders.Trades.
func (t orderTrades) OwnKey(ctx context.Context, listing market.Anchor, tradeID string) (orders.Signer, error) {
	return t.Service.OwnKey(ctx, listing, tradeID)
}

// WaitPublic implements orders.Trades.
func (t orderTrades) WaitPublic(ctx context.Context, tradeID string, wait orders.PublicWait) (orders.PublicOrders, error) {
	public, err := t.Service.WaitPublic(ctx, tradeID, trades.PublicWait(wait))
	return orders.PublicOrders(public), err
}

// Publish implements orders.Trades.
func (t orderTrades) Publish(ctx context.Context, publication orders.Publication) (*nostr.Event, error) {
	published, err := t.Service.Publish(ctx, trades.Publication{
		Order: publication.Order, Key: publication.Key, Role: publication.Role, Type: publication.Type, From: publication.From,
	})
	return published.Order, err
}

// Trips implements orders.Trades.
func (t orderTrades) Trips(ctx context.Context, limit time.Duration) (orders.TradeList, error) {
	return orderList(t.Service.Trips(ctx, limit))
}

// Hostings implements orders.Trades.
func (t orderTrades) Hostings(ctx context.Context, limit time.Duration) (orders.TradeList, error) {
	return orderList(t.Service.Hostings(ctx, limit))
}

func orderList(list trades.List, err error) (orders.TradeList, error) {
	return orders.TradeList{Items: tradeItems(list), Warning: list.Warning}, err
}

// orderListings is the listings as the order service needs them.
type orderListings struct{ *listings.Service }

// Find implements orders.Listings.
func (l orderListings) Find(ctx context.Context, anchor market.Anchor) (*market.Listing, *fault.Error, error) {
	sought, err := l.Service.Find(ctx, anchor)
	return sought.Listing, sought.Warning, err
}

// Available implements orders.Listings.
func (l orderListings) Available(ctx context.Context, anchor market.Anchor, stay market.DateRange) (*market.Listing, bool, *fault.Error, error) {
	found, err := l.Service.Availability(ctx, []market.Anchor{anchor}, stay)
	if err != nil {
		return nil, false, nil, err
	}
	return found[0].Listing, found[0].Available, found[0].Warning, nil
}

// orderPeople is what the order service needs of profiles and relay lists.
type orderPeople struct {
	profiles   *profiles.Service
	relayLists *relaylists.Lists
}

// Profile implements orders.People.
func (p orderPeople) Profile(ctx context.Context, pubkey string) (*market.Profile, error) {
	return p.profiles.Shown(ctx, pubkey)
}

// RelayHint implements orders.People.
func (p orderPeople) RelayHint(ctx context.Context, pubkey string) string {
	_, _, _ = p.relayLists.Load(ctx, pubkey) // a hint may be missing
	return p.relayLists.Hint(pubkey)
}

// WriteRelays implements orders.People.
func (p orderPeople) WriteRelays(pubkey string) []string { return p.relayLists.WriteRelays(pubkey) }

// orderRecords keeps the records of an account's trades.
type orderRecords struct {
	operations Operations
	pubkey     string
}

// PutTrade implements orders.Records.
func (r orderRecords) PutTrade(ctx context.Context, tradeID string, state json.RawMessage) error {
	return r.operations.PutOperation(ctx, r.pubkey, store.Operation{Namespace: "order_trade", ID: tradeID, Data: state})
}
