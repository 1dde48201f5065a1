package sessions

import (
	"context"
	"encoding/hex"
	"fmt"

	"hostr-daemon/internal/inbox"
	"hostr-daemon/internal/secrets"
)

// inboxService keeps the account's private messages. controls tells which trade keys
// are the account's, stale takes a refusal of its signer.
func (c *Config) inboxService(account *Account, services *Services, records *secrets.Records, controls func(pubkey, tradeID string) bool, stale func(error)) *inbox.Service {
	config := inbox.Config{
		Relays:        services.relays,
		Account:       account.holder,
		Controls:      controls,
		NotAuthorized: stale,
		Now:           c.Now,
		Random:        c.Random,
		Logger:        c.Logger,
	}
	if c.MessageCache != nil {
		config.Memory = c.MessageCache(account.pubkey)
		config.Keys = messageCacheKey{records: records, pubkey: account.pubkey}
	}
	return inbox.New(config)
}

// messageCacheKey is an account's place for the key of its message cache.
type messageCacheKey struct {
	records *secrets.Records
	pubkey  string
}

// MessageCacheKey implements inbox.Keys.
func (k messageCacheKey) MessageCacheKey(ctx context.Context) (key [32]byte, made bool, err error) {
	stored, made, err := k.records.MessageCacheKey(ctx, k.pubkey)
	if err != nil {
		return key, false, err
	}
	raw, err := hex.DecodeString(stored.Reveal())
	if err != nil || len(raw) != len(key) {
		return key, false, fmt.Errorf("the key of the message cache is not %d bytes in hex", len(key))
	}
	copy(key[:], raw)
	return key, made, nil
}

// DeleteMessageCacheKey implements inbox.Keys.
func (k messageCacheKey) DeleteMessageCacheKey(ctx context.Context) error {
	return k.records.DeleteMessageCacheKey(ctx, k.pubkey)
}
