package trades

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
)

// people are those of a trade, all on one relay.
func people(t *testing.T) (host, guest, escrow *person) {
	return newPerson(t, commonRelay), newPerson(t, commonRelay), newPerson(t, commonRelay)
}

func TestTradeIsListedOnBothSides(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	at := host.offer(escrow)
	hosting, travelling := host.start(), guest.start()
	booked := travelling.begin(at, escrow)
	booked.commit()

	trip := travelling.awaitStage(booked.tradeID(), market.StageCommit, travelling.trips)
	if !trip.Verification.Valid || trip.Listing == nil || trip.Listing.Title != "Cabin" {
		t.Errorf("trip %+v, listing %+v", trip.Verification, trip.Listing)
	}
	hosted := hosting.awaitStage(booked.tradeID(), market.StageCommit, hosting.hostings)
	for side, item := range map[string]Item{"trip": trip, "hosting": hosted} {
		if got := item.Participants.ProvenPubkey(market.RoleBuyer); got != guest.public {
			t.Errorf("%s: the buyer is %s, want the guest %s", side, got, guest.public)
		}
	}
	if n := len(travelling.hostings().Items); n != 0 {
		t.Errorf("%d hostings of a guest", n)
	}
	if n := len(hosting.trips().Items); n != 0 {
		t.Errorf("%d trips of a host", n)
	}
	eventually(t, "the transition is known", func() bool { return len(hosting.Transitions(booked.tradeID())) == 1 })

	again := host.newProcess() // after a restart
	again.settle()
	again.awaitStage(booked.tradeID(), market.StageCommit, again.hostings)
}

// Whoever has seen a public order can publish others with its trade id, its proofs and
// its participants. None of it changes anything for those who take part.
func TestStrangersChangeNothing(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	at := host.offer(escrow)
	hosting, travelling := host.start(), guest.start()
	booked := travelling.begin(at, escrow)
	committed := booked.commit()
	hosting.awaitStage(booked.tradeID(), market.StageCommit, hosting.hostings)

	stranger := newPerson(t, commonRelay)
	copied := slices.Clone(committed.Order.Tags[2:])
	stranger.strangerOrder(booked, market.StageCancel)
	for _, stage := range []market.Stage{market.StageCancel, market.StageCommit} {
		other := newPerson(t, commonRelay)
		other.strangerOrder(booked, stage, copied...) // another group: his key is among the participants
	}
	forger := newPerson(t, commonRelay)
	forged := *committed.Order
	forged.PubKey = forger.public
	forger.publish(forger.local, &forged)

	for name, run := range map[string]*process{"host": hosting, "guest": travelling} {
		eventually(t, "the strangers' orders are there", func() bool {
			run.mu.Lock()
			defer run.mu.Unlock()
			return len(run.trades[booked.tradeID()].groups) == 5
		})
		run.settle()
		list := run.trips
		if run == hosting {
			list = run.hostings
		}
		items := list().Items
		if len(items) != 1 || items[0].Group.Stage() != market.StageCommit || len(items[0].Group.Orders()) != 1 {
			t.Errorf("%s: %d items at %s", name, len(items), items[0].Group.Stage())
		}
		found, err := run.WaitPublic(patient(t), booked.tradeID(), PublicWait{Limit: patience, UntilAnswered: true, Done: func([]market.Order) bool { return false }})
		if err != nil || !found.Complete || len(found.Orders) != 1 || found.Orders[0].Event.ID != committed.Order.ID {
			t.Errorf("%s: found %d orders, complete %t, %v", name, len(found.Orders), found.Complete, err)
		}
		resolved, err := run.ResolveTrade(patient(t), booked.tradeID(), patience)
		if err != nil || resolved.Seller != host.public || resolved.Buyer != guest.public || resolved.Escrow != escrow.public {
			t.Errorf("%s: resolved %+v, %v", name, resolved, err)
		}
		want := []string{host.public, guest.public, escrow.public}
		slices.Sort(want)
		if !slices.Equal(resolved.Participants, want) {
			t.Errorf("%s: participants %v", name, resolved.Participants)
		}
	}
	if trips := stranger.start().trips(); len(trips.Items) != 0 {
		t.Errorf("the stranger has %d trips", len(trips.Items))
	}
}

func TestCancelOfAPartyCounts(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	at := host.offer(escrow)
	hosting, travelling := host.start(), guest.start()
	booked := travelling.begin(at, escrow)
	committed := booked.commit()
	own, err := market.DecodeOrder(committed.Order)
	if err != nil {
		t.Fatal(err)
	}
	cancelled, err := travelling.Publish(patient(t), Publication{
		Order: market.CancelOwnOrder(own, nostr.Now()), Key: booked.keys.Key, Role: market.RoleBuyer,
		Type: market.TransitionCancel, From: market.StageCommit,
	})
	if err != nil {
		t.Fatal(err)
	}
	if cancelled.Order.CreatedAt <= committed.Order.CreatedAt {
		t.Error("the cancellation is not newer than the booking")
	}
	hosting.awaitStage(booked.tradeID(), market.StageCancel, hosting.hostings)
	travelling.awaitStage(booked.tradeID(), market.StageCancel, travelling.trips)
	transition, err := market.DecodeOrderTransition(cancelled.Transition)
	if err != nil || transition.Previous != committed.Transition.ID || transition.OrderID != cancelled.Order.ID {
		t.Errorf("the transition follows %q, %v", transition.Previous, err)
	}
}

// Two publications at once make one chain.
func TestPublicationsOfOneAuthorFollowEachOther(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	order := booked.commit().Order
	own, err := market.DecodeOrder(order)
	if err != nil {
		t.Fatal(err)
	}
	const count = 4
	errs := make(chan error, count)
	for range count {
		go func() {
			_, err := travelling.Publish(patient(t), Publication{
				Order: market.ConfirmOwnOrder(own, nostr.Now()), Key: booked.keys.Key, Role: market.RoleBuyer,
				Type: market.TransitionConfirm, From: market.StageCommit,
			})
			errs <- err
		}()
	}
	for range count {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	var chain []market.OrderTransition
	eventually(t, "all transitions are known", func() bool {
		chain = travelling.Transitions(booked.tradeID())
		return len(chain) == count+1
	})
	if resolved := market.ResolveTransitions(chain, market.RoleBuyer); resolved.Failure != nil {
		t.Error(resolved.Failure)
	}
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	for name, publication := range map[string]Publication{
		"a negotiation": {Order: booked.offer.Event, Key: booked.keys.Key},
		"another key":   {Order: booked.commitment(), Key: guest.local},
		"no order":      {Order: &nostr.Event{Kind: 1}, Key: guest.local},
	} {
		if _, err := travelling.Publish(patient(t), publication); !fault.Is(err, fault.UnexpectedError) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stored, err := commonRelay.Relay.Query(patient(t), ordersFilter(booked.tradeID()))
	if err != nil || len(stored) != 0 {
		t.Errorf("%d orders were published, %v", len(stored), err)
	}
}

// slowKey holds a publication where the caller is gone and the order is not public yet.
type slowKey struct {
	Signer
	signed chan struct{}
	goOn   chan struct{}
}

func (k slowKey) SignEvent(ctx context.Context, event *nostr.Event) error {
	if event.Kind == market.KindOrderTransition {
		close(k.signed)
		<-k.goOn
	}
	return k.Signer.SignEvent(ctx, event)
}

// A second cancellation waits for the first, also when nobody waits for that, and is
// refused then.
func TestCancellationsAtOnce(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	own, err := market.DecodeOrder(booked.commit().Order)
	if err != nil {
		t.Fatal(err)
	}
	slow := slowKey{booked.keys.Key, make(chan struct{}), make(chan struct{})}
	cancel := func(ctx context.Context, key Signer) error {
		_, err := travelling.Publish(ctx, Publication{
			Order: market.CancelOwnOrder(own, nostr.Now()), Key: key, Role: market.RoleBuyer,
			Type: market.TransitionCancel, From: market.StageCommit,
		})
		return err
	}
	ctx, giveUp := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- cancel(ctx, slow) }()
	<-slow.signed
	go func() { second <- cancel(patient(t), booked.keys.Key) }()
	giveUp()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	close(slow.goOn)
	if err := <-second; !fault.Is(err, fault.AlreadyCancelled) || fault.From(err).Details == nil {
		t.Errorf("the second: %v", err)
	}
	err = cancel(patient(t), booked.keys.Key)
	if !fault.Is(err, fault.AlreadyCancelled) {
		t.Errorf("a third: %v", err)
	}
	chain := travelling.Transitions(booked.tradeID())
	if resolved := market.ResolveTransitions(chain, market.RoleBuyer); resolved.Failure != nil || len(chain) != 2 {
		t.Errorf("%d transitions, %v", len(chain), resolved.Failure)
	}
	if _, err := travelling.Publish(patient(t), Publication{
		Order: booked.commitment(), Key: booked.keys.Key, Role: market.RoleBuyer, Type: market.TransitionCommit, From: market.StageNegotiate,
	}); !fault.Is(err, fault.AlreadyCancelled) {
		t.Errorf("a commit after it: %v", err)
	}
}

// An order that was made before another one of its author was published is stale.
func TestPublishOfAStaleOrder(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	booked.commit()
	_, err := travelling.Publish(patient(t), Publication{
		Order: booked.commitment(), Key: booked.keys.Key, Role: market.RoleBuyer, Type: market.TransitionCommit, From: market.StageNegotiate,
	})
	if !fault.Is(err, fault.UnexpectedError) || !fault.From(err).Retryable {
		t.Errorf("error %v", err)
	}
}

// Anybody can commit to a listing of his own, name somebody as its guest and write to
// him: that makes no trip. For an escrow, whom others have to name, it does.
func TestTripsOfStrangers(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	for _, isEscrow := range []bool{false, true} {
		run, quiet := guest.quietly()
		run.isEscrow = isEscrow
		order := host.publish(host.local, &nostr.Event{
			PubKey: host.public, Kind: market.KindOrder, CreatedAt: nostr.Now(), Content: market.OrderContent{Stage: market.StageCommit, Quantity: 1}.Encode(),
			Tags: nostr.Tags{{"a", "30402:" + host.public + ":x"}, {"d", "claimed" + host.public}, {"p", host.public, "", "seller"}, {"p", guest.public, "", "buyer"}},
		})
		quiet.get(rumorOf(t, host.public, order, "claimed"+host.public, guest.public))
		quiet.goLive()
		run.settle()
		if items := run.trips().Items; (len(items) == 1) != isEscrow {
			t.Errorf("escrow %t: %d trips", isEscrow, len(items))
		}
	}

	// Nor do cancellations by strangers of what is negotiated in private.
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	strange := newPerson(t, commonRelay).strangerOrder(booked, market.StageCancel, nostr.Tag{"p", host.public, "", "seller"}, nostr.Tag{"p", guest.public, "", "buyer"})
	eventually(t, "the stranger's order is there", func() bool {
		travelling.mu.Lock()
		defer travelling.mu.Unlock()
		t := travelling.trades[booked.tradeID()]
		return len(t.groups) == 1 && t.groups[0].group.Orders()[0].Event.ID == strange.ID
	})
	travelling.settle()
	if items := travelling.trips().Items; len(items) != 0 {
		t.Errorf("%d trips by a stranger's word", len(items))
	}
	booked.commit()
	travelling.awaitStage(booked.tradeID(), market.StageCommit, travelling.trips)
}

// A hostile host may name whom he likes in a public order: our identity, our trade key,
// strangers, and what is no key at all.
func TestHostileParticipants(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	stranger := newPerson(t, commonRelay)
	host.publish(host.local, &nostr.Event{
		PubKey: host.public, Kind: market.KindOrder, CreatedAt: nostr.Now(), Content: market.OrderContent{Stage: market.StageCommit, Quantity: 1}.Encode(),
		Tags: nostr.Tags{{"a", booked.place.anchor.String()}, {"d", booked.tradeID()}, {"p", host.public, "", "seller"}, {"p", guest.public, "", ""},
			{"p", booked.keys.Key.PublicKey(), "", "buyer"}, {"p", escrow.public, "", "escrow"}, {"p", stranger.public, "", ""}, {"p", "garbage", "", ""}},
	})
	travelling.awaitStage(booked.tradeID(), market.StageCommit, travelling.trips)
	resolved, err := travelling.ResolveTrade(patient(t), booked.tradeID(), patience)
	want := []string{host.public, guest.public, escrow.public}
	slices.Sort(want)
	if err != nil || resolved.Buyer != guest.public || !slices.Equal(resolved.Participants, want) {
		t.Errorf("resolved %+v, %v", resolved, err)
	}
}

func TestEscrowThatIsNoKey(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	host.publish(host.local, &nostr.Event{
		PubKey: host.public, Kind: market.KindOrder, CreatedAt: nostr.Now(), Content: market.OrderContent{Stage: market.StageCommit, Quantity: 1}.Encode(),
		Tags: nostr.Tags{{"a", booked.place.anchor.String()}, {"d", booked.tradeID()}, {"p", host.public, "", "seller"},
			{"p", booked.keys.Key.PublicKey(), "", "buyer"}, {"p", "garbage", "", "escrow"}},
	})
	travelling.awaitStage(booked.tradeID(), market.StageCommit, travelling.trips)
	_, err := travelling.ResolveTrade(patient(t), booked.tradeID(), patience)
	var failure *ResolutionError
	if !errors.As(err, &failure) || !slices.Equal(failure.Missing, []market.Role{market.RoleEscrow}) {
		t.Errorf("error %v", err)
	}
	if coded := fault.From(err); !errors.Is(err, coded) || fault.From(err) != coded || coded.Code != fault.EscrowThreadResolutionFailed {
		t.Errorf("coded as %v", coded)
	}
}

// A chain that forked elsewhere keeps the transition from being written, not the order.
func TestPublishWithABrokenChain(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	for _, reason := range []string{"one", "two"} {
		guest.publish(booked.keys.Key, market.OrderTransition{
			TradeID: booked.tradeID(), OrderID: booked.offer.Event.ID, ListingAnchor: booked.place.anchor.String(), Reason: reason,
			Type: market.TransitionCommit, From: market.StageNegotiate, To: market.StageCommit,
		}.Draft(booked.keys.Key.PublicKey(), nostr.Now()))
	}
	eventually(t, "the guest knows of both, which say that there are two beginnings", func() bool {
		return len(travelling.Transitions(booked.tradeID())) == 2
	})
	_, err := travelling.Publish(patient(t), Publication{
		Order: booked.commitment(), Key: booked.keys.Key, Role: market.RoleBuyer, Type: market.TransitionCommit, From: market.StageNegotiate,
	})
	var failure *market.ChainFailure
	if !fault.Is(err, fault.UnexpectedError) || !errors.As(err, &failure) {
		t.Errorf("error %v", err)
	}
	travelling.awaitStage(booked.tradeID(), market.StageCommit, travelling.trips)
}

func TestWaitPublicOfATradeNobodyToldUsOf(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	committed := booked.commit()
	isCommitted := func(orders []market.Order) bool {
		return slices.ContainsFunc(orders, func(order market.Order) bool { return order.Stage == market.StageCommit })
	}

	arbiter := escrow.start() // is named by the order, and has no message about it
	found, err := arbiter.WaitPublic(patient(t), booked.tradeID(), PublicWait{Limit: patience, Done: isCommitted})
	if err != nil || len(found.Orders) != 1 || found.Orders[0].Event.ID != committed.Order.ID {
		t.Errorf("the escrow found %d orders, %v", len(found.Orders), err)
	}
	if n := len(arbiter.trips().Items); n != 0 {
		t.Errorf("looking for a trade made it a trip: %d", n)
	}

	curious := newPerson(t, commonRelay).start()
	found, err = curious.WaitPublic(patient(t), booked.tradeID(), PublicWait{Limit: patience, Done: isCommitted, UntilAnswered: true})
	if err != nil || len(found.Orders) != 0 || !found.Complete {
		t.Errorf("somebody else found %d orders, complete %t, %v", len(found.Orders), found.Complete, err)
	}
	var failure *ResolutionError
	if _, err := curious.ResolveTrade(patient(t), booked.tradeID(), patience); !errors.As(err, &failure) ||
		failure.Problem != ProblemUnknownTrade || !fault.Is(err, fault.EscrowThreadResolutionFailed) {
		t.Errorf("resolving: %v", err)
	}
	resolved, err := arbiter.ResolveTrade(patient(t), booked.tradeID(), patience)
	if err != nil || resolved.Buyer != guest.public {
		t.Errorf("the escrow resolved %+v, %v", resolved, err)
	}
}

func TestWaitPublicSeesWhatComesLater(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	hosting, travelling := host.start(), guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	hosting.settle()
	type outcome struct {
		found PublicOrders
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		found, err := hosting.WaitPublic(patient(t), booked.tradeID(), PublicWait{Limit: patience})
		done <- outcome{found, err}
	}()
	committed := booked.commit()
	if got := <-done; got.err != nil || len(got.found.Orders) != 1 || got.found.Orders[0].Event.ID != committed.Order.ID {
		t.Errorf("found %d orders, %v", len(got.found.Orders), got.err)
	}
	if found, err := hosting.WaitPublic(patient(t), "nothing", PublicWait{}); err != nil || len(found.Orders) != 0 || found.Complete {
		t.Errorf("without a limit %+v, %v", found, err)
	}
}

func TestOwnKey(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	at := host.offer(escrow)
	hosting, travelling := host.newProcess(), guest.start()
	booked := travelling.begin(at, escrow)
	for name, test := range map[string]struct {
		run  *process
		want string
	}{
		"host":  {hosting, host.public},
		"guest": {travelling, booked.keys.Key.PublicKey()},
	} {
		key, err := test.run.OwnKey(patient(t), at.anchor, booked.tradeID())
		if err != nil || key.PublicKey() != test.want {
			t.Errorf("%s: %v, %v", name, key, err)
		}
	}
	if key, err := escrow.newProcess().OwnKey(patient(t), at.anchor, booked.tradeID()); key != nil || !fault.Is(err, fault.UnexpectedError) {
		t.Errorf("somebody else: %v, %v", key, err)
	}
	if !travelling.Controls(booked.keys.Key.PublicKey(), booked.tradeID()) || travelling.Controls(booked.keys.Key.PublicKey(), "other") {
		t.Error("the guest does not control the trade key in its trade, or does elsewhere")
	}
}

// Without the seed nothing is known of trade keys, which is not remembered.
func TestSeedThatComesLate(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	booked.commit()

	guest.seed.held = make(chan struct{})
	again := guest.newProcess()
	again.settle()
	again.awaitStage(booked.tradeID(), market.StageCommit, again.trips)
	if again.Controls(booked.keys.Key.PublicKey(), booked.tradeID()) {
		t.Error("the trade key is known without the seed")
	}
	close(guest.seed.held)
	eventually(t, "the guest is known to stand behind the trade key", func() bool {
		items := again.trips().Items
		return len(items) == 1 && items[0].Participants.ProvenPubkey(market.RoleBuyer) == guest.public
	})
	if guest.indexes.highest != booked.keys.Index {
		t.Errorf("highest index %d", guest.indexes.highest)
	}
}

// A remote signer opens each proof once, only of the group that counts, and is asked
// again when it did not answer.
func TestProofsWithARemoteSigner(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	at := host.offer(escrow)
	travelling := guest.start()
	booked := travelling.begin(at, escrow)
	committed := booked.commit()
	for range 3 {
		newPerson(t, commonRelay).strangerOrder(booked, market.StageCommit, committed.Order.Tags[2:]...)
	}
	host.account.remote = true
	host.account.refuseWith(errors.New("no answer"))
	hosting := host.start()
	hosting.awaitStage(booked.tradeID(), market.StageCommit, hosting.hostings)
	if _, err := hosting.ResolveTrade(patient(t), booked.tradeID(), patience); !fault.Is(err, fault.EscrowThreadResolutionFailed) {
		t.Errorf("resolved without signer: %v", err)
	}
	eventually(t, "the signer is asked again", func() bool { return host.account.decryptions() > 2 })
	host.account.refuseWith(nil)
	hosting.Resume()
	eventually(t, "the guest is known", func() bool {
		items := hosting.hostings().Items
		return len(items) == 1 && items[0].Participants.ProvenPubkey(market.RoleBuyer) == guest.public
	})
	before := host.account.decryptions()
	hosting.mu.Lock()
	for _, group := range hosting.trades[booked.tradeID()].groups {
		hosting.enqueue(group)
	}
	hosting.mu.Unlock()
	hosting.settle()
	if resolved, err := hosting.ResolveTrade(patient(t), booked.tradeID(), patience); err != nil || resolved.Buyer != guest.public {
		t.Errorf("resolved %+v, %v", resolved, err)
	}
	if after := host.account.decryptions(); after != before {
		t.Errorf("the signer was asked %d times again", after-before)
	}
}

// A signer that says no is not asked for ever.
func TestRefusedProofs(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	at := host.offer(escrow)
	travelling := guest.start()
	booked := travelling.begin(at, escrow)
	booked.commit()
	host.account.remote = true
	host.account.refuseWith(&signer.Rejected{Method: "nip44_decrypt", Text: "no"})
	hosting := host.start()
	eventually(t, "the signer has refused and is left alone", func() bool {
		hosting.mu.Lock()
		defer hosting.mu.Unlock()
		groups := hosting.trades[booked.tradeID()].groups
		return len(groups) == 1 && groups[0].verified != nil && !groups[0].unopened && len(groups[0].unasked) == 0 &&
			host.account.decryptions() >= maxRefusals
	})
	if asked := host.account.decryptions(); asked != maxRefusals {
		t.Errorf("the signer was asked %d times", asked)
	}
}

// An order may carry any number of proofs.
func TestFewProofsAreOpenedOfOneOrder(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	at := host.offer(escrow)
	travelling := guest.start()
	booked := travelling.begin(at, escrow)
	order := booked.commitment()
	payload, err := booked.keys.Key.NIP44Encrypt(patient(t), host.public, "nothing")
	if err != nil {
		t.Fatal(err)
	}
	hostile := nostr.Tags{}
	for i := range 500 {
		hostile = append(hostile, nostr.Tag{"participant_proof", "buyer", booked.keys.Key.PublicKey(), host.public, "nip44", string(rune('a'+i%26)) + time.Duration(i).String(), payload})
	}
	order.Tags = slices.Concat(order.Tags[:5], hostile)
	guest.publish(booked.keys.Key, order)
	hosting := host.start()
	hosting.awaitStage(booked.tradeID(), market.StageCommit, hosting.hostings)
	if asked := host.account.decryptions(); asked != proofsPerOrder {
		t.Errorf("%d proofs were opened", asked)
	}
}

// hastyKey gives up the caller's wait as soon as it has signed.
type hastyKey struct {
	Signer
	giveUp func()
}

func (k hastyKey) SignEvent(ctx context.Context, event *nostr.Event) error {
	defer k.giveUp()
	return k.Signer.SignEvent(ctx, event)
}

// An order and its transition are published to the end although nobody waits.
func TestPublishGoesOn(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := travelling.Publish(ctx, Publication{
		Order: booked.commitment(), Key: hastyKey{booked.keys.Key, cancel}, Role: market.RoleBuyer,
		Type: market.TransitionCommit, From: market.StageNegotiate,
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	eventually(t, "order and transition are public", func() bool {
		return len(travelling.Transitions(booked.tradeID())) == 1 && len(travelling.trips().Items) == 1
	})
}

// An order does not become public without its transition because the session ends.
func TestCloseLetsPublicationsEnd(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	travelling.limits.closing = patience
	booked := travelling.begin(host.offer(escrow), escrow)
	slow := slowKey{booked.keys.Key, make(chan struct{}), make(chan struct{})}
	done, closed := make(chan error, 1), make(chan struct{})
	go func() {
		_, err := travelling.Publish(patient(t), Publication{
			Order: booked.commitment(), Key: slow, Role: market.RoleBuyer, Type: market.TransitionCommit, From: market.StageNegotiate,
		})
		done <- err
	}()
	<-slow.signed
	go func() {
		defer close(closed)
		travelling.Service.Close()
	}()
	eventually(t, "the service closes", func() bool {
		travelling.mu.Lock()
		defer travelling.mu.Unlock()
		return travelling.closed
	})
	close(slow.goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-closed
	stored, err := commonRelay.Relay.Query(patient(t), nostr.Filter{Kinds: []int{market.KindOrderTransition}, Tags: nostr.TagMap{"d": {booked.tradeID()}}})
	if err != nil || len(stored) != 1 {
		t.Errorf("%d transitions are public, %v", len(stored), err)
	}
}

// What no relay has taken changes nothing here.
func TestPublishThatIsRefused(t *testing.T) {
	t.Parallel()
	own := startRelay(t)
	host, guest, escrow := newPerson(t, own), newPerson(t, own), newPerson(t, own)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	travelling.settle()
	own.Relay.Break(sandbox.Faults{RefuseEvents: "blocked: not today"})
	_, err := travelling.Publish(patient(t), Publication{
		Order: booked.commitment(), Key: booked.keys.Key, Role: market.RoleBuyer, Type: market.TransitionCommit, From: market.StageNegotiate,
	})
	if err == nil || len(travelling.trips().Items) != 0 {
		t.Errorf("%d trips, %v", len(travelling.trips().Items), err)
	}
	own.Relay.Heal()
	booked.commit()
	travelling.awaitStage(booked.tradeID(), market.StageCommit, travelling.trips)
}

func TestClosedServiceAnswers(t *testing.T) {
	t.Parallel()
	run := newPerson(t, commonRelay).newProcess()
	run.stop()
	if _, err := run.Trips(patient(t), patience); !fault.From(err).Retryable {
		t.Errorf("trips: %v", err)
	}
	if _, err := run.WaitPublic(patient(t), "t", PublicWait{Limit: patience}); !fault.From(err).Retryable {
		t.Errorf("waiting: %v", err)
	}
}
