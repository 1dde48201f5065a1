package sessions

import (
	"context"
	"slices"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/evm"
	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/seeds"
	"hostr-daemon/internal/trades"
)

// ChainActivity knows whether an EVM account was ever used.
type ChainActivity interface {
	Used(ctx context.Context, address string, chains []evm.Activity) (bool, error)
}

// tradeService follows the account's public orders.
func (c *Config) tradeService(account *Account, services *Services, messages *inbox.Service, records *secrets.Records) *trades.Service {
	config := trades.Config{
		Relays:  services.relays,
		Account: account.holder,
		Inbox:   messages,
		Keys:    tradeSeed{services.Seeds, seedRecord{records: records, pubkey: account.pubkey}},
		Indexes: tradeIndexes{records: records, pubkey: account.pubkey},
		Turns:   c.TradeTurns,
		Now:     c.Now,
		Logger:  c.Logger,

		IsEscrow: slices.Contains(c.Environment.EscrowPubkeys, account.pubkey),
	}
	if chains := activities(c.Environment.EVM.Chains); len(chains) > 0 {
		config.Chains = usedAccounts{chains: c.ChainActivity, activities: chains}
	}
	return trades.New(config)
}

// tradeSeed gives the keys derived from an account's seed.
type tradeSeed struct {
	*seeds.Service
	record seedRecord
}

// Stored implements trades.Keys.
func (s tradeSeed) Stored(ctx context.Context) (bool, error) {
	_, stored, err := s.record.Seed(ctx)
	return stored, err
}

// usedAccounts asks all chains of the environment.
type usedAccounts struct {
	chains     ChainActivity
	activities []evm.Activity
}

// Used implements trades.Chains.
func (u usedAccounts) Used(ctx context.Context, address string) (bool, error) {
	return u.chains.Used(ctx, address, u.activities)
}

func activities(chains []environment.Chain) []evm.Activity {
	var activities []evm.Activity
	for _, chain := range chains {
		activity := evm.Activity{ChainID: chain.ChainID}
		if abstraction := chain.AccountAbstraction; abstraction != nil {
			activity.EntryPoint, activity.Factory = abstraction.EntryPointAddress, abstraction.AccountFactoryAddress
		}
		for _, token := range chain.Tokens {
			activity.Tokens = append(activity.Tokens, token.Address)
		}
		activities = append(activities, activity)
	}
	return activities
}

// tradeIndexes is an account's place for its highest trade index.
type tradeIndexes struct {
	records *secrets.Records
	pubkey  string
}

// noIndex is below every index: raising to it changes nothing.
const noIndex = -1

// MaxAccountIndex implements trades.Indexes.
func (i tradeIndexes) MaxAccountIndex(ctx context.Context) (int, error) {
	return i.records.RaiseMaxAccountIndex(ctx, i.pubkey, noIndex)
}

// RaiseMaxAccountIndex implements trades.Indexes.
func (i tradeIndexes) RaiseMaxAccountIndex(ctx context.Context, index int) (highest int, err error) {
	return i.records.RaiseMaxAccountIndex(ctx, i.pubkey, index)
}
