package trades

import (
	"context"
	"fmt"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/signer"
)

const (
	// scannedIndexes is how many indexes are looked through for a trade id at least
	// (spec 50 §9.3).
	scannedIndexes = 64
	// farIndexes is how many are looked through for the trade id of an order that we have
	// sent ourselves.
	farIndexes = 2048
	// farStep is after how many of them the caller is asked whether to go on.
	farStep = 64
	// keptSigners is how many trade keys are kept ready to sign.
	keptSigners = 64
	// noIndex is the highest index of an account without trades.
	noIndex = -1
)

// keyring knows which trade ids and trade keys are the account's. What it does not
// know it never remembers as not being so: the seed may still come.
type keyring struct {
	me      string
	source  Keys
	indexes Indexes
	// higher gets a signal when an index was met that is above the stored one.
	higher chan struct{}

	// scanning is held while indexes far above are looked through. It is taken before mu.
	scanning sync.Mutex

	mu sync.Mutex
	// keys is nil until the seed is known.
	keys    *derivation.Keys
	highest int
	// ids are the trade ids of the indexes from 0 on, byID the same the other way round.
	ids     []string
	byID    map[string]int
	pubkeys map[int]string
	signers *lru.Cache[int, *signer.Local]
}

func newKeyring(me string, source Keys, indexes Indexes) *keyring {
	signers, err := lru.New[int, *signer.Local](keptSigners)
	if err != nil {
		panic(err) // Only for a size below one.
	}
	return &keyring{
		me: me, source: source, indexes: indexes, higher: make(chan struct{}, 1),
		highest: noIndex, byID: map[string]int{}, pubkeys: map[int]string{}, signers: signers,
	}
}

// learn waits for the keys; fresh is true for the one call that brought them.
func (r *keyring) learn(ctx context.Context) (fresh bool, err error) {
	if r.known() {
		return false, nil
	}
	keys, err := r.source.Keys(ctx)
	if err != nil {
		return false, err
	}
	highest, err := r.indexes.MaxAccountIndex(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the highest trade account: %w", err)
	}
	ids, err := deriveTradeIDs(keys, nil, scanned(highest)) // Takes too long for the lock.
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys != nil {
		return false, nil
	}
	r.keys, r.highest, r.ids = keys, highest, ids
	for index, id := range ids {
		r.byID[id] = index
	}
	return true, nil
}

func (r *keyring) known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys != nil
}

// scanned returns how many indexes are looked through for a trade id.
func scanned(highest int) int { return max(scannedIndexes, highest+2) }

// scan derives the trade ids up to where they are looked for. The lock is held.
func (r *keyring) scan() error { return r.scanTo(scanned(r.highest)) }

func (r *keyring) scanTo(count int) error {
	ids, err := deriveTradeIDs(r.keys, r.ids, count)
	for index := len(r.ids); index < len(ids); index++ {
		r.byID[ids[index]] = index
	}
	r.ids = ids
	return err
}

// scanFar derives the trade ids of all indexes that can be ours; fresh is false when
// they were before.
func (r *keyring) scanFar(ctx context.Context) (fresh bool, err error) {
	r.scanning.Lock()
	defer r.scanning.Unlock()
	r.mu.Lock()
	keys, ids := r.keys, slices.Clone(r.ids)
	r.mu.Unlock()
	if keys == nil || len(ids) >= farIndexes {
		return false, nil
	}
	for len(ids) < farIndexes { // Takes too long for the lock.
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if ids, err = deriveTradeIDs(keys, ids, min(len(ids)+farStep, farIndexes)); err != nil {
			return false, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for index := len(r.ids); index < len(ids); index++ {
		r.ids = append(r.ids, ids[index])
		r.byID[ids[index]] = index
	}
	return true, nil
}

// deriveTradeIDs continues the trade ids of the indexes from 0 on.
func deriveTradeIDs(keys *derivation.Keys, ids []string, count int) ([]string, error) {
	for len(ids) < count {
		id, err := keys.TradeID(uint32(len(ids)))
		if err != nil {
			return ids, fmt.Errorf("deriving trade id %d: %w", len(ids), err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// index returns the index of a trade id of ours, without waiting for anything; false
// when it is not known to be one. A match above the highest index raises that.
func (r *keyring) index(tradeID string) (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(tradeID)
}

func (r *keyring) find(tradeID string) (int, bool) {
	index, ok := r.byID[tradeID]
	if ok && index > r.highest && index >= 1 {
		r.highest = index
		if r.scan() == nil {
			signal(r.higher)
		}
	}
	return index, ok
}

// tradeKey returns the public key of our trade key in a trade, without waiting.
func (r *keyring) tradeKey(tradeID string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	index, ok := r.find(tradeID)
	if !ok {
		return "", false
	}
	if pubkey, known := r.pubkeys[index]; known {
		return pubkey, true
	}
	key, err := r.keys.Trade(uint32(index))
	if err != nil {
		return "", false
	}
	r.pubkeys[index] = key.PublicKey()
	return r.pubkeys[index], true
}

// controls reports whether the key is the account's or its trade key, without waiting.
func (r *keyring) controls(pubkey, tradeID string) bool {
	if pubkey == r.me {
		return true
	}
	tradeKey, ok := r.tradeKey(tradeID)
	return ok && pubkey == tradeKey
}

// tradeID returns the trade id of an index.
func (r *keyring) tradeID(index int) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.scanTo(index + 1); err != nil {
		return "", err
	}
	return r.ids[index], nil
}

// address returns the EVM address of an index.
func (r *keyring) address(index int) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, err := r.keys.EVM(uint32(index))
	if err != nil {
		return "", fmt.Errorf("deriving the EVM address of trade account %d: %w", index, err)
	}
	return key.Address(), nil
}

// signer returns the trade key of an index.
func (r *keyring) signer(index int) (*signer.Local, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if local, ok := r.signers.Get(index); ok {
		return local, nil
	}
	key, err := r.keys.Trade(uint32(index))
	if err != nil {
		return nil, fmt.Errorf("deriving the key of trade account %d: %w", index, err)
	}
	local, err := signer.NewLocal(key.Hex())
	if err != nil {
		return nil, fmt.Errorf("the key of trade account %d: %w", index, err)
	}
	r.signers.Add(index, local)
	return local, nil
}

// storedHighest returns the highest index that is stored, and the one that is known
// here, which is not below.
func (r *keyring) storedHighest(ctx context.Context) (stored, highest int, err error) {
	stored, err = r.indexes.MaxAccountIndex(ctx)
	if err != nil {
		return noIndex, noIndex, fmt.Errorf("reading the highest trade account: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.highest = max(r.highest, stored)
	return stored, r.highest, r.scan()
}

// raise stores an index as reserved.
func (r *keyring) raise(ctx context.Context, index int) error {
	highest, err := r.indexes.RaiseMaxAccountIndex(ctx, index)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.highest = max(r.highest, highest)
	return r.scan()
}

// highestMet returns the highest index met or reserved so far.
func (r *keyring) highestMet() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.highest
}

func (r *keyring) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, local := range r.signers.Values() {
		local.Close()
	}
	r.signers.Purge()
}
