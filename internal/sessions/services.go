package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/listings"
	"hostr-daemon/internal/orders"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/relaylists"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/seeds"
	"hostr-daemon/internal/sellers"
	"hostr-daemon/internal/threads"
	"hostr-daemon/internal/trades"
)

// Services are the use cases on one set of relay connections. They belong to one
// account, or to nobody: NIP-42 binds a connection to an account, so signing in as
// somebody else brings new ones.
type Services struct {
	// Profiles looks people up, Editor changes the account's own profile.
	Profiles *profiles.Service
	Editor   *profiles.Editor
	// Listings finds places to stay.
	Listings *listings.Service
	// ListingEditor publishes the account's own; nil while nobody is signed in.
	ListingEditor *listings.Editor
	// RelayLists knows where people read and write (NIP-65).
	RelayLists *relaylists.Lists
	// Seeds finds the account seed; nil while nobody is signed in.
	Seeds *seeds.Service
	// Sellers keeps the seller configuration published; nil while nobody is signed in.
	Sellers *sellers.Service
	// Orders acts in the account's trades; nil while nobody is signed in.
	Orders *orders.Service
	// Threads works on the account's conversations; nil while nobody is signed in.
	Threads *threads.Service

	relays *relay.Client
	// inbox and trades are what the account has going on with others; nil while nobody
	// is signed in.
	inbox  *inbox.Service
	trades *trades.Service
	// sends are what is being sent, nil while nobody is signed in.
	sends     *begunSends
	sendLimit time.Duration
	logger    zerolog.Logger
}

func (c *Config) services(account relay.Account) (*Services, error) {
	facts := c.Environment
	client, err := relay.NewClient(relay.Config{
		HostrRelay: facts.HostrRelay,
		Bootstrap:  facts.BootstrapList(),
		TLS:        facts.TLSConfig(),
		Account:    account,
		Verifier:   c.Verifier,
		Logger:     c.RelayLogger,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the relay client of %s: %w", facts.Name, err)
	}
	found := profiles.New(client, facts.HostrRelay, facts.BootstrapList(), c.Profiles)
	lists := relaylists.New(client, facts.BootstrapList(), c.RelayLists)
	return &Services{
		Profiles:   found,
		Editor:     profiles.NewEditor(found, client, lists, c.Now),
		Listings:   listings.New(client, c.Cells),
		RelayLists: lists,
		relays:     client,
		sendLimit:  c.sendLimit,
		logger:     c.Logger,
	}, nil
}

// accountServices are those of somebody who is signed in; stale takes what the signer
// refuses in the background.
func (c *Config) accountServices(account *Account, records *secrets.Records, stale func(error)) (*Services, error) {
	services, err := c.services(account.holder)
	if err != nil {
		return nil, err
	}
	var marks seeds.Memory
	if c.SeedMarks != nil {
		marks = c.SeedMarks(account.pubkey)
	}
	services.Seeds, err = seeds.New(seeds.Config{
		Memory:  marks,
		Relays:  services.relays,
		Account: account.holder,
		Local:   seedRecord{records: records, pubkey: account.pubkey},
		Derived: account.derived,
		Random:  c.Random,
		Logger:  c.Logger,
	})
	if err != nil {
		services.close()
		return nil, err
	}
	services.Sellers = sellers.New(sellers.Config{
		Relays:    services.relays,
		Account:   account.holder,
		Keys:      services.Seeds,
		Chains:    c.Environment.EVM.Chains,
		Escrows:   c.Environment.EscrowPubkeys,
		Contracts: c.Contracts,
		Swaps:     c.SwapProvider,
		Now:       c.Now,
		Logger:    c.Logger,
	})
	services.ListingEditor = c.listingEditor(account, services)
	services.inbox = c.inboxService(account, services, records, func(pubkey, tradeID string) bool {
		return services.trades.Controls(pubkey, tradeID)
	}, stale)
	services.sends = &begunSends{inbox: services.inbox}
	services.trades = c.tradeService(account, services, services.inbox, records)
	services.Orders = c.orderService(account, services, orderParts{
		inbox: orderInbox{services.inbox, services.sends}, trades: services.trades, operations: c.Operations,
	})
	services.Threads = threadService(account, services, services.inbox, services.trades)
	return services, nil
}

// listingEditor publishes through the account's other services.
func (c *Config) listingEditor(account *Account, services *Services) *listings.Editor {
	return listings.NewEditor(listings.EditorConfig{
		Service:   services.Listings,
		Publisher: services.relays,
		Author:    account.holder,
		Images:    c.Media.ListingImages(account.holder),
		Addresses: c.Cells,
		SeedReady: func(ctx context.Context) error {
			_, err := services.Seeds.Keys(ctx)
			return err
		},
		EnsureSeller: func(ctx context.Context) error {
			_, err := services.Sellers.Ensure(ctx)
			return err
		},
		Now:    c.Now,
		Logger: c.Logger,
	})
}

// close ends the services first, so that what they have under way ends as closed and
// not as a failure of the relays. A message that is being sent has a moment to get
// through: the person is not to be told that delivery is unknown.
func (s *Services) close() {
	if s.sends != nil {
		s.sends.wait(s.sendLimit)
	}
	if s.Orders != nil {
		s.Orders.Close()
	}
	if s.trades != nil {
		s.trades.Close()
	}
	if s.inbox != nil {
		s.inbox.Close()
	}
	if s.Sellers != nil {
		s.Sellers.Close()
	}
	if s.Seeds != nil {
		s.Seeds.Close()
	}
	s.Profiles.Close()
	s.relays.Close()
}
