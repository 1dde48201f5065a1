package trades

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox"
)

// usedChains are chains on which some accounts were used.
type usedChains struct {
	mu    sync.Mutex
	used  map[string]bool
	asked int
	err   error
}

func (c *usedChains) Used(_ context.Context, address string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.used[address], c.err
}

func (p *person) tradeID(index uint32) string {
	p.t.Helper()
	id, err := p.seed.keys.TradeID(index)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *person) reserve(run *process, persist bool) TradeKeys {
	p.t.Helper()
	keys, err := run.Reserve(patient(p.t), persist)
	if err != nil {
		p.t.Fatal(err)
	}
	if want := p.tradeID(uint32(keys.Index)); keys.TradeID != want {
		p.t.Errorf("index %d has trade id %s, want %s", keys.Index, keys.TradeID, want)
	}
	return keys
}

func TestReservePassesOverWhatWasUsed(t *testing.T) {
	t.Parallel()
	guest := newPerson(t, commonRelay)
	run := guest.start()
	// Index 1 has a thread, 2 a public order, 3 was used on a chain.
	note := market.MessageDraft{Kind: market.KindTextMessage, Content: "hello", Conversation: guest.tradeID(1), Recipients: []string{newPerson(t, commonRelay).public}}
	if _, err := run.inbox.Send(patient(t), note); err != nil {
		t.Fatal(err)
	}
	content := market.OrderContent{Stage: market.StageCommit, Quantity: 1}
	guest.publish(guest.local, &nostr.Event{
		PubKey: guest.public, Kind: market.KindOrder, CreatedAt: nostr.Now(), Content: content.Encode(),
		Tags: nostr.Tags{{"a", "30402:" + guest.public + ":x"}, {"d", guest.tradeID(2)}},
	})
	used, err := guest.seed.keys.EVM(3)
	if err != nil {
		t.Fatal(err)
	}
	run.Service.chains = &usedChains{used: map[string]bool{used.Address(): true}}

	preview := guest.reserve(run, false)
	if highest, _ := guest.indexes.MaxAccountIndex(t.Context()); preview.Index != 4 || highest >= 4 { // 1 was met
		t.Errorf("previewed %d, stored %d", preview.Index, highest)
	}
	if live := guest.reserve(run, true); live.TradeID != preview.TradeID || guest.indexes.highest != 4 {
		t.Errorf("reserved %d, stored %d", live.Index, guest.indexes.highest)
	}
	if next := guest.reserve(run, true); next.Index != 5 {
		t.Errorf("then %d", next.Index)
	}
	if again := guest.reserve(guest.start(), false); again.Index != 6 {
		t.Errorf("after a restart %d", again.Index)
	}
}

// Reservations at the same time, even by two sessions of an account, never give out
// the same index.
func TestReservationsTakeTurns(t *testing.T) {
	t.Parallel()
	guest := newPerson(t, commonRelay)
	one, two := guest.start(), guest.start()
	two.reserving = one.reserving
	const each = 4
	found := make(chan int, 2*each)
	var reserving sync.WaitGroup
	for _, run := range []*process{one, two} {
		for range each {
			reserving.Go(func() {
				keys, err := run.Reserve(patient(t), true)
				if err != nil {
					t.Error(err)
				}
				found <- keys.Index
			})
		}
	}
	reserving.Wait()
	close(found)
	known := map[int]bool{}
	for index := range found {
		if known[index] || index < 1 {
			t.Errorf("index %d was given out twice", index)
		}
		known[index] = true
	}
}

func TestReserveFailsWhereUseIsNotKnown(t *testing.T) {
	t.Parallel()
	own := startRelay(t)
	guest := newPerson(t, own)
	run := guest.start()
	own.Relay.Break(sandbox.Faults{Closed: "blocked: not today"})
	if _, err := run.Reserve(patient(t), true); !fault.From(err).Retryable {
		t.Errorf("with half an answer: %v", err)
	}
	own.Relay.Heal()
	run.Service.chains = &usedChains{err: fault.New(fault.UnexpectedError, "no node").Transient()}
	if _, err := run.Reserve(patient(t), true); !fault.From(err).Retryable {
		t.Errorf("without a chain: %v", err)
	}
	if guest.indexes.highest != noIndex {
		t.Errorf("index %d was stored", guest.indexes.highest)
	}
	run.Service.chains = nil
	if keys := guest.reserve(run, true); keys.Index != 1 {
		t.Errorf("reserved %d", keys.Index)
	}
}

func TestReserveCanBeGivenUp(t *testing.T) {
	t.Parallel()
	guest := newPerson(t, commonRelay)
	guest.seed.held = make(chan struct{})
	run := guest.newProcess()
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := errors.New("gave up")
	cancel(gaveUp)
	if _, err := run.Reserve(ctx, true); !errors.Is(err, gaveUp) {
		t.Errorf("error %v", err)
	}
	close(guest.seed.held)
	end, err := run.reserving.Take(patient(t), guest.public)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Reserve(ctx, true); !errors.Is(err, gaveUp) {
		t.Errorf("waiting for its turn: %v", err)
	}
	end()
}

// The messages may take longer than a reservation waits for them. A device that has
// read them before goes on, a new one does not: another may have sent offers.
func TestReserveWithoutMessages(t *testing.T) {
	t.Parallel()
	guest := newPerson(t, commonRelay)
	run, quiet := guest.quietly()
	run.limits.inbox = time.Millisecond
	run.Start()
	// The half of the history that has come holds an order of the other device.
	host := newPerson(t, commonRelay)
	quiet.get(rumorOf(t, guest.public, privateOrder(host.public, "aa", guest.tradeID(5)), guest.tradeID(5), host.public))
	for _, persist := range []bool{false, true} {
		if _, err := run.Reserve(patient(t), persist); !fault.From(err).Retryable {
			t.Errorf("on a new device: %v", err)
		}
	}
	if highest, _ := guest.indexes.MaxAccountIndex(t.Context()); highest != noIndex {
		t.Errorf("index %d was stored", highest)
	}
	quiet.goLive()
	eventually(t, "what was met is stored", func() bool {
		highest, err := guest.indexes.MaxAccountIndex(t.Context())
		return err == nil && highest == 5
	})
	if keys := guest.reserve(run, true); keys.Index != 6 {
		t.Errorf("with the messages reserved %d", keys.Index)
	}
	again, _ := guest.quietly()
	again.limits.inbox = time.Millisecond
	if keys := guest.reserve(again, true); keys.Index != 7 {
		t.Errorf("where they were read before, reserved %d", keys.Index)
	}
}

func TestReleasedIndexes(t *testing.T) {
	t.Parallel()
	guest := newPerson(t, commonRelay)
	run := guest.start()
	first, second, third := guest.reserve(run, true), guest.reserve(run, true), guest.reserve(run, true)
	run.Release(third)
	run.Release(first)
	run.Release(first)
	run.Release(TradeKeys{TradeID: guest.tradeID(9)})
	if preview := guest.reserve(run, false); preview.Index != first.Index {
		t.Errorf("previewed %d, released %d", preview.Index, first.Index)
	}
	// What shows use all the same is not given out again.
	content := market.OrderContent{Stage: market.StageCommit, Quantity: 1}
	guest.publish(guest.local, &nostr.Event{
		PubKey: guest.public, Kind: market.KindOrder, CreatedAt: nostr.Now(), Content: content.Encode(),
		Tags: nostr.Tags{{"a", "30402:" + guest.public + ":x"}, {"d", first.TradeID}},
	})
	for _, want := range []int{third.Index, third.Index + 1} {
		if keys := guest.reserve(run, true); keys.Index != want || keys.Index == second.Index {
			t.Errorf("reserved %d, want %d", keys.Index, want)
		}
	}
	if guest.indexes.highest != third.Index+1 {
		t.Errorf("stored %d", guest.indexes.highest)
	}
}

// A device that is signed in anew knows no highest index, but the offers that were sent.
func TestKeysFarAboveTheHighest(t *testing.T) {
	t.Parallel()
	guest, host, escrow := newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
	guest.indexes.highest = 150
	booked := guest.start().begin(host.offer(escrow), escrow)
	device := *guest
	device.indexes = &indexPlace{highest: noIndex}
	run := device.start()
	eventually(t, "the trade key is found", func() bool {
		return run.Controls(booked.keys.Key.PublicKey(), booked.tradeID())
	})
	keys, ours, err := run.TradeKeys(patient(t), booked.tradeID())
	if err != nil || !ours || keys.Index != booked.keys.Index {
		t.Errorf("keys of index %d, ours %t, %v", keys.Index, ours, err)
	}
	if next := device.reserve(run, false); next.Index != booked.keys.Index+1 {
		t.Errorf("next %d", next.Index)
	}
}

// Whoever asks for keys before they were looked for so far waits for them.
func TestKeysFarAboveAreWaitedFor(t *testing.T) {
	t.Parallel()
	guest, host := newPerson(t, commonRelay), newPerson(t, commonRelay)
	run, quiet := guest.quietly()
	id := guest.tradeID(farIndexes - 1)
	quiet.get(rumorOf(t, guest.public, privateOrder(host.public, "aa", id), id, host.public))
	if keys, ours, err := run.TradeKeys(patient(t), id); err != nil || !ours || keys.Index != farIndexes-1 {
		t.Errorf("keys of index %d, ours %t, %v", keys.Index, ours, err)
	}
}

// An account that only looks at its messages gets no seed.
func TestStartMakesNoSeed(t *testing.T) {
	t.Parallel()
	guest := newPerson(t, commonRelay)
	guest.seed.absent.Store(true)
	run := guest.start()
	run.Resume()
	run.trips()
	run.stop()
	if made := guest.seed.made.Load(); made != 0 {
		t.Errorf("the seed was asked for %d times", made)
	}
}

// A trade id that another device has used raises the highest index, also far above.
func TestIndexesOfOtherDevices(t *testing.T) {
	t.Parallel()
	guest := newPerson(t, commonRelay)
	guest.indexes.highest = 70
	run := guest.start()
	for _, test := range []struct {
		index uint32
		known bool
	}{{0, true}, {71, true}, {72, true}, {74, false}} { // 72 is in reach once 71 was met
		if _, known, err := run.TradeKeys(patient(t), guest.tradeID(test.index)); err != nil || known != test.known {
			t.Errorf("index %d: known %t, %v", test.index, known, err)
		}
	}
	eventually(t, "the highest index is stored", func() bool {
		highest, err := guest.indexes.MaxAccountIndex(t.Context())
		return err == nil && highest == 72
	})
}

// silentInbox is an inbox that gets nothing, and never comes to the end of it.
type silentInbox struct {
	mu     sync.Mutex
	rumors []func(market.Rumor)
	live   []func()
	isLive bool
}

func (i *silentInbox) OnRumor(observer func(market.Rumor)) { i.rumors = append(i.rumors, observer) }
func (i *silentInbox) OnLive(observer func())              { i.live = append(i.live, observer) }
func (i *silentInbox) Start()                              {}
func (i *silentInbox) Reassess()                           {}

func (i *silentInbox) Await(ctx context.Context, limit time.Duration) error {
	if !pause(ctx, limit) {
		return context.Cause(ctx)
	}
	return nil
}

func (i *silentInbox) Live() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.isLive
}

func (i *silentInbox) Read(read func(*market.Threads)) {
	read(market.NewThreads("", func(string, string) bool { return false }))
}

// goLive ends the history.
func (i *silentInbox) goLive() {
	i.mu.Lock()
	i.isLive = true
	i.mu.Unlock()
	for _, observer := range i.live {
		observer()
	}
}

// get has a message come in.
func (i *silentInbox) get(rumor market.Rumor) {
	for _, observer := range i.rumors {
		observer(rumor)
	}
}
