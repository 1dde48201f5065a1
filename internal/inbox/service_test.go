package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
)

func TestTwoAccountsTalk(t *testing.T) {
	t.Parallel()
	guest, host := newPerson(t, commonRelay), newPerson(t, commonRelay)
	here, there := guest.start(), host.start()

	question := here.send("Is it free?", "trade", host.public)
	if got := here.seen.texts(); !slices.Equal(got, []string{"Is it free?"}) {
		t.Errorf("the sender's own messages after sending: %q", got)
	}
	if len(question.Receipts) != 2 || !question.Receipts[0].BroadcastSuccessful || !question.Receipts[1].BroadcastSuccessful {
		t.Errorf("receipts %+v", question.Receipts)
	}
	there.awaitTexts("Is it free?")
	there.send("It is.", "trade", guest.public)
	here.awaitTexts("Is it free?", "It is.")
	eventually(t, "the relay has shown the own copies", func() bool { return here.ownCopies() == 0 && there.ownCopies() == 0 })

	for _, side := range []*process{here, there} {
		if decrypted := side.app.count("nip44_decrypt"); decrypted != 2 {
			t.Errorf("%d decryptions for one foreign message", decrypted)
		}
		if wraps := len(side.stored()); wraps != 2 {
			t.Errorf("%d gift wraps for a message each way", wraps)
		}
		if diff := cmp.Diff([]string{"AUTH", "REQ"}, side.frames()); diff != "" {
			t.Errorf("frames (-want +got):\n%s", diff)
		}
		side.Read(func(threads *market.Threads) {
			all := threads.All()
			if len(all) != 1 || all[0].Tag != "trade" || len(all[0].TextMessages()) != 2 {
				t.Fatalf("threads %+v", all)
			}
			if all[0].Unread() != 1 {
				t.Errorf("%d unread", all[0].Unread())
			}
		})
	}
}

// ownCopies counts own copies that the relay has not shown.
func (s *Service) ownCopies() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.own)
}

func TestHistoryBeforeLive(t *testing.T) {
	t.Parallel()
	me := newPerson(t, commonRelay)
	me.write(newLocal(t, randomKey(t)), "one", "two", "three")
	run := me.newProcess()
	atLive := make(chan int, 2)
	run.OnLive(func() { atLive <- run.seen.count() })
	if run.Live() {
		t.Error("live before the start")
	}
	run.Start()
	run.Start()
	run.awaitLive()
	if count := receive(t, atLive); count != 3 || len(atLive) > 0 {
		t.Errorf("%d messages when it went live, and %d more times", count, len(atLive))
	}
	run.Read(func(threads *market.Threads) {
		for _, thread := range threads.All() {
			if thread.Unread() != 0 {
				t.Errorf("%d unread in the history", thread.Unread())
			}
		}
	})
}

// Wraps that come again and messages that come in two wraps count once, also after a
// lost connection.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	at := startRelay(t)
	me, stranger := newPerson(t, at), newLocal(t, randomKey(t))
	at.Relay.Break(sandbox.Faults{Duplicates: 2})
	me.write(stranger, "once")
	rumor := textDraft("twice", "", me.public).Event(stranger.PublicKey(), 1_780_000_000)
	text := market.EncodeEmbeddedEvent(rumor)
	me.insert(wrapText(t, stranger, me.public, text), wrapText(t, stranger, me.public, text))
	run := me.start()
	run.awaitTexts("once", "twice")
	at.Relay.Drop()
	me.deliver(wrapText(t, stranger, me.public, strings.Replace(text, "twice", "later", 1)))
	run.awaitTexts("once", "twice", "later")
	if decrypted := me.app.count("nip44_decrypt"); decrypted != 2*4 {
		t.Errorf("%d decryptions of four wraps", decrypted)
	}
	frames := me.frames()
	if len(frames)%2 != 0 || slices.Contains(frames, "AUTH") && frames[0] != "AUTH" {
		t.Errorf("frames %v", frames)
	}
	for i := 0; i+1 < len(frames); i += 2 {
		if frames[i] != "AUTH" || frames[i+1] != "REQ" {
			t.Errorf("a REQ without AUTH: %v", frames)
		}
	}
}

func TestHostileWraps(t *testing.T) {
	t.Parallel()
	me, stranger := newPerson(t, commonRelay), newLocal(t, randomKey(t))
	now := nostr.Now()
	forged := textDraft("forged", "", me.public).Event(me.public, now)
	unsealed := nostr.Event{Kind: market.KindTextMessage, CreatedAt: now, Tags: nostr.Tags{}, Content: "seal of another kind"}
	if err := stranger.SignEvent(patient(t), &unsealed); err != nil {
		t.Fatal(err)
	}
	order := textDraft("", "", me.public)
	order.Kind, order.Content = market.KindStructuredMessage, `{"kind":32122,"created_at":1,"content":"{\"stage\":7}"}`
	hostile := []nostr.Event{
		wrapContent(t, me.public, strings.Repeat("\n", 200), now),
		wrapContent(t, me.public, strings.Repeat("\r\n", 70_000), now),
		wrapContent(t, me.public, "", now),
		wrapContent(t, me.public, strings.Repeat("A", 200_000), now),
		wrapContent(t, me.public, strings.Repeat("AgAA", 40), now-400*24*3600),
		wrapContent(t, me.public, strings.Repeat("AgAA", 41), now+1500),
		wrapSeal(t, me.public, "[]"),
		wrapSeal(t, me.public, strings.Repeat(`{"a":`, 9000)),
		wrapSeal(t, me.public, market.EncodeEmbeddedEvent(&unsealed)),
		wrapText(t, stranger, me.public, market.EncodeEmbeddedEvent(forged)),
		wrapText(t, stranger, me.public, `{"kind":"14"}`),
		wrapText(t, stranger, me.public, market.EncodeEmbeddedEvent(order.Event(stranger.PublicKey(), now))),
	}
	me.insert(hostile...)
	me.write(stranger, "honest")
	run := me.start()
	run.awaitTexts("honest")
	me.deliver(wrapContent(t, me.public, strings.Repeat("\n", 132), now))
	run.send("still here", "", stranger.PublicKey())
	run.awaitTexts("honest", "still here")
	run.stop()
	me.app.count("nip44_decrypt")

	again := me.start()
	again.awaitTexts("honest", "still here")
	if decrypted := me.app.count("nip44_decrypt"); decrypted > 0 {
		t.Errorf("%d decryptions of what nobody can open", decrypted)
	}
}

// A lost connection and a signer that does not sign the next AUTH at once.
func TestUnsignedAuth(t *testing.T) {
	t.Parallel()
	at := startRelay(t)
	me := newPerson(t, at)
	me.app.remote = true
	run := me.start()
	refusals := make(chan struct{}, 3)
	me.app.refuseWith(func(_ context.Context, method, _ string) error {
		if method != "auth" {
			return nil
		}
		select {
		case refusals <- struct{}{}:
			return errors.New("the signer is busy")
		default:
			return nil
		}
	})
	at.Relay.Drop()
	me.write(newLocal(t, randomKey(t)), "meanwhile")
	eventually(t, "the signer was asked again and again", func() bool {
		run.Resume() // Each failure to sign waits a little longer for the next attempt.
		return len(refusals) == cap(refusals)
	})
	run.Resume()
	run.awaitTexts("meanwhile")
}

func TestRefusedSubscription(t *testing.T) {
	t.Parallel()
	at := startRelay(t)
	me := newPerson(t, at)
	me.write(newLocal(t, randomKey(t)), "hello")
	at.Relay.Break(sandbox.Faults{Closed: "restricted: not you", Times: 2})
	run := me.newProcess()
	run.Start()
	eventually(t, "the history is there", func() bool {
		run.Resume()
		return run.Live()
	})
	if run.seen.count() != 1 {
		t.Error("it went live without the history")
	}
	run.awaitTexts("hello")
}

// A relay that never ends the history does not hold it up, and what it then sends is
// no reason to ask for less the next time.
func TestHistoryWithoutEnd(t *testing.T) {
	t.Parallel()
	at := startRelay(t)
	at.Relay.Break(sandbox.Faults{NoEOSE: true})
	me := newPerson(t, at)
	me.write(newLocal(t, randomKey(t)), "hello")
	run := me.newProcess()
	run.historyLimit = 100 * time.Millisecond
	run.awaitLive()
	run.awaitTexts("hello")
	run.stop()
	if completed, _, err := me.store.MessageCache(me.public).Marks(patient(t)); err != nil || !completed.IsZero() {
		t.Errorf("marked as complete at %v, %v", completed, err)
	}
}

func TestAwaitEnds(t *testing.T) {
	t.Parallel()
	at := startRelay(t)
	at.Relay.Break(sandbox.Faults{RefuseConnections: true})
	me := newPerson(t, at)
	run := me.newProcess()
	if err := run.Await(patient(t), time.Millisecond); err != nil || run.Live() {
		t.Errorf("the limit gave %v, live %t", err, run.Live())
	}
	gone := errors.New("the caller is gone")
	ctx, cancel := context.WithCancelCause(patient(t))
	cancel(gone)
	if err := run.Await(ctx, patience); !errors.Is(err, gone) {
		t.Errorf("the end of the caller gave %v", err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- run.Await(context.Background(), patience) }()
	run.stop()
	if err := receive(t, waiting); err == nil {
		t.Error("the end of the session gave no error")
	}
	if err := run.Await(patient(t), patience); err == nil {
		t.Error("a closed inbox gave no error")
	}
	if _, err := run.Send(patient(t), textDraft("x", "", me.public)); err == nil {
		t.Error("a closed inbox sends")
	}
	run.Start()
}

// The relay comes back while it is waited for.
func TestRelayComesBack(t *testing.T) {
	t.Parallel()
	at := startRelay(t)
	me := newPerson(t, at)
	me.relayClock = hurriedClock{started: time.Now()}
	me.write(newLocal(t, randomKey(t)), "hello")
	at.Relay.Break(sandbox.Faults{RefuseConnections: true})
	run := me.newProcess()
	run.Start()
	if _, err := at.Relay.WaitFor(patient(t), func(c sandbox.Counters) bool { return c.Refused > 0 }); err != nil {
		t.Fatal(err)
	}
	at.Relay.Heal()
	run.awaitLive()
	run.awaitTexts("hello")
}

func TestNoHostrRelay(t *testing.T) {
	t.Parallel()
	me := newPerson(t, commonRelay)
	service := New(me.config(noRelay{}))
	defer service.Close()
	if err := service.Await(patient(t), patience); err != nil || !service.Live() {
		t.Errorf("%v, live %t", err, service.Live())
	}
	if _, err := service.Send(patient(t), textDraft("x", "", me.public)); err == nil {
		t.Error("a message was sent nowhere")
	}
}

type noRelay struct{ Relays }

func (noRelay) HostrRelay() string { return "" }

// Observers that fail cost nobody anything.
func TestPanickingObservers(t *testing.T) {
	t.Parallel()
	me := newPerson(t, commonRelay)
	me.write(newLocal(t, randomKey(t)), "one", "two")
	run := me.newProcess()
	run.OnRumor(func(r market.Rumor) { panic(r.Event.Content) })
	run.OnLive(func() { panic("secret words") })
	last := &rumors{}
	run.OnRumor(last.add)
	run.awaitLive()
	run.awaitTexts("one", "two")
	if diff := cmp.Diff(run.seen.texts(), last.texts()); diff != "" {
		t.Errorf("observers disagree (-first +last):\n%s", diff)
	}
	if log := me.journal.String(); !strings.Contains(log, "inbox.panic") || strings.Contains(log, "secret words") {
		t.Errorf("log:\n%s", log)
	}
}

// A session may end at any time.
func TestCloseDuringHydration(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprintf("remote=%t", remote), func(t *testing.T) {
			t.Parallel()
			me := newPerson(t, commonRelay)
			me.app.remote = remote
			texts := make([]string, 10)
			for i := range texts {
				texts[i] = fmt.Sprint("message ", i)
			}
			me.write(newLocal(t, randomKey(t)), texts...)
			asked := make(chan struct{}, 100)
			me.app.refuseWith(func(ctx context.Context, method, _ string) error {
				if method != "nip44_decrypt" {
					return nil
				}
				asked <- struct{}{}
				<-ctx.Done()
				return context.Cause(ctx)
			})
			run := me.newProcess()
			run.Start()
			receive(t, asked)
			run.stop()
			run.Service.Close()

			me.app.refuseWith(nil)
			again := me.start()
			again.awaitTexts(texts...)
		})
	}
}

// Without a signer nothing is lost and nobody spins.
func TestSignerTakenOut(t *testing.T) {
	t.Parallel()
	me := newPerson(t, commonRelay)
	holder, err := signer.NewHolder(me.public, true)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	me.app.Account, me.app.remote = holder, true
	if err := holder.Set(me.local); err != nil {
		t.Fatal(err)
	}
	run := me.start()
	if err := holder.Set(nil); err != nil {
		t.Fatal(err)
	}
	me.deliver(me.made(newLocal(t, randomKey(t)), "for whom?")...)
	me.deliver(wrapText(t, newLocal(t, randomKey(t)), me.public, "{}"))
	eventually(t, "the signer was asked for", func() bool {
		me.app.mu.Lock()
		defer me.app.mu.Unlock()
		return me.app.asked["nip44_decrypt"] > 0
	})
	if _, err := run.Send(patient(t), textDraft("x", "", me.public)); !errors.Is(err, signer.ErrNoSigner) {
		t.Errorf("sending without a signer: %v", err)
	}
	if err := holder.Set(newLocal(t, me.key)); err != nil {
		t.Fatal(err)
	}
	run.Resume()
	run.awaitTexts("for whom?")
}

func TestHeartbeatAfterForeignMessage(t *testing.T) {
	t.Parallel()
	me := newPerson(t, commonRelay)
	run := me.start()
	if err := run.sendHeartbeat(patient(t)); err != nil {
		t.Fatal(err)
	}
	found, err := me.market.Relay.Query(patient(t), nostr.Filter{Kinds: []int{market.KindHeartbeat}, Authors: []string{me.public}})
	if err != nil || len(found) != 1 || found[0].Content != "" || len(found[0].Tags) != 0 {
		t.Errorf("heartbeats %v, %v", found, err)
	}
}

var _ Relays = (*relay.Client)(nil)
var _ Account = (*signer.Holder)(nil)
