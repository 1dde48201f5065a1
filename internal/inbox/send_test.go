package inbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
)

// answering stands before the relay client and may answer what is published.
type answering struct {
	*relay.Client
	mu        sync.Mutex
	published []nostr.Event
	// answer may answer a publication; ok is false where the relay is to.
	answer func(ctx context.Context, to string) (receipts []relay.Receipt, err error, ok bool)
}

func (a *answering) Publish(ctx context.Context, event nostr.Event, options relay.PublishOptions) ([]relay.Receipt, error) {
	a.mu.Lock()
	a.published = append(a.published, event)
	a.mu.Unlock()
	if receipts, err, ok := a.answer(ctx, event.Tags[0][1]); ok {
		return receipts, err
	}
	return a.Client.Publish(ctx, event, options)
}

func (a *answering) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.published)
}

// startAnswering is start with an answering in front of the relay.
func (p *person) startAnswering(answer func(ctx context.Context, to string) ([]relay.Receipt, error, bool)) (*process, *answering) {
	p.t.Helper()
	client, closeClient := p.newClient()
	front := &answering{Client: client, answer: answer}
	run := &process{Service: New(p.config(front)), person: p, client: client, seen: &rumors{}}
	run.OnRumor(run.seen.add)
	p.t.Cleanup(func() {
		run.Service.Close()
		closeClient()
	})
	run.awaitLive()
	return run, front
}

// The relay takes the account's own copy and refuses the other one.
func TestRefusedCopy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		receipt   relay.Receipt
		refuseAll bool
		hint      string
		retryable bool
	}{
		"refused":         {relay.Receipt{RelayURL: "wss://relay.test", OKReceived: true, Message: "blocked: no"}, false, "stay delivered", false},
		"silent":          {relay.Receipt{RelayURL: "wss://relay.test"}, false, "Delivery is unknown", false},
		"refused for all": {relay.Receipt{RelayURL: "wss://relay.test", OKReceived: true, Message: "blocked: no"}, true, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			me, other := newPerson(t, commonRelay), newLocal(t, randomKey(t)).PublicKey()
			shown := make(chan struct{})
			run, front := me.startAnswering(func(_ context.Context, to string) ([]relay.Receipt, error, bool) {
				if to == me.public && !test.refuseAll {
					return nil, nil, false
				}
				if !test.refuseAll {
					<-shown // The own copy is accepted, and shown, before.
				}
				return []relay.Receipt{test.receipt}, fault.New(fault.UnexpectedError, "No relay accepted it. wss://relay.test: %s", test.receipt.Message), true
			})
			failed := make(chan error, 1)
			go func() {
				_, err := run.Send(patient(t), textDraft("half", "", other))
				failed <- err
			}()
			if !test.refuseAll {
				eventually(t, "the relay has shown the own copy", func() bool {
					run.mu.Lock()
					defer run.mu.Unlock()
					return len(run.wraps) == 1
				})
				if run.seen.count() > 0 {
					t.Error("the message is there before all copies were accepted")
				}
				close(shown)
			}
			problem := receive(t, failed)
			coded := fault.From(problem)
			if nothingLeft(problem) != test.refuseAll {
				t.Errorf("that nothing has left is %t", nothingLeft(problem))
			}
			if coded.Code != fault.UnexpectedError || coded.Retryable != test.retryable || !strings.Contains(coded.Hint, test.hint) {
				t.Errorf("error %+v", coded)
			}
			front.mu.Lock()
			wrap := front.published[slices.IndexFunc(front.published, func(e nostr.Event) bool { return e.Tags[0][1] == other })]
			front.mu.Unlock()
			for _, part := range []string{"kind 14", other, wrap.ID, "wss://relay.test", test.receipt.Message} {
				if !strings.Contains(coded.Message, part) {
					t.Errorf("%q does not name %q", coded.Message, part)
				}
			}
			// What the relay has shown is a message, read without the signer.
			if !test.refuseAll {
				run.awaitTexts("half")
			} else if run.seen.count() > 0 {
				t.Error("a message that nobody took is there")
			}
			if decrypted := me.app.count("nip44_decrypt"); decrypted > 0 {
				t.Errorf("%d decryptions", decrypted)
			}
		})
	}
}

// Who stops waiting learns that delivery is unknown, and what began goes on.
func TestSendGivenUp(t *testing.T) {
	t.Parallel()
	gone := errors.New("the caller is gone")
	for name, test := range map[string]struct {
		end   func() (context.Context, func())
		check func(error) bool
	}{
		"cancelled": {
			func() (context.Context, func()) {
				ctx, cancel := context.WithCancelCause(context.Background())
				return ctx, func() { cancel(gone) }
			},
			func(err error) bool { return errors.Is(err, gone) },
		},
		"out of time": {
			func() (context.Context, func()) {
				ctx := timeless{context.Background(), make(chan struct{})}
				return ctx, func() { close(ctx.over) }
			},
			func(err error) bool {
				coded := fault.From(err)
				return coded.Code == fault.UnexpectedError && !coded.Retryable && strings.Contains(coded.Message, "unknown")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			me, other := newPerson(t, commonRelay), newLocal(t, randomKey(t)).PublicKey()
			begun, release := make(chan struct{}, 2), make(chan struct{})
			run, _ := me.startAnswering(func(ctx context.Context, _ string) ([]relay.Receipt, error, bool) {
				begun <- struct{}{}
				select {
				case <-release:
					return nil, nil, false
				case <-ctx.Done():
					return nil, context.Cause(ctx), true
				}
			})
			ctx, end := test.end()
			failed := make(chan error, 1)
			go func() {
				_, err := run.Send(ctx, textDraft("on its way", "", other))
				failed <- err
			}()
			receive(t, begun)
			receive(t, begun)
			end()
			if err := receive(t, failed); !test.check(err) {
				t.Errorf("error %v", err)
			}
			close(release)
			run.awaitTexts("on its way")
		})
	}
}

// timeless is a context whose time is over when the test says so.
type timeless struct {
	context.Context
	over chan struct{}
}

func (d timeless) Done() <-chan struct{} { return d.over }

func (d timeless) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func nothingLeft(err error) bool {
	var said interface{ NothingLeft() bool }
	return errors.As(err, &said) && said.NothingLeft()
}

// What cannot be wrapped for everybody is sent to nobody.
func TestNothingIsSent(t *testing.T) {
	t.Parallel()
	me, other := newPerson(t, commonRelay), newLocal(t, randomKey(t)).PublicKey()
	run, front := me.startAnswering(func(context.Context, string) ([]relay.Receipt, error, bool) { return nil, nil, false })
	empty := len(market.EncodeEmbeddedEvent(textDraft("", "", other).Event(me.public, 1_780_000_000)))
	structured := textDraft("no event", "", other)
	structured.Kind = market.KindStructuredMessage
	check := func(name string, draft market.MessageDraft, want string) {
		t.Helper()
		_, err := run.Send(patient(t), draft)
		if err == nil || !nothingLeft(err) || !strings.Contains(err.Error(), "not sent") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check("too long", textDraft(strings.Repeat("a", giftwrap.MaxRumor-empty+1), "", other), "too long")
	check("no event", structured, "kind 1327")
	check("not UTF-8", textDraft("\xff", "", other), "UTF-8")
	check("no such recipient", textDraft("a", "", other, strings.Repeat("f", 64)), "")
	me.app.refuseWith(func(_ context.Context, method, _ string) error {
		if method == "nip44_encrypt" {
			return errors.New("the signer says no")
		}
		return nil
	})
	check("refused", textDraft("a", "", other), "the signer says no")
	me.app.refuseWith(func(context.Context, string, string) error { panic("secret words") })
	check("panic", textDraft("a", "", other), "")
	me.app.refuseWith(nil)
	if count := front.count(); count > 0 || run.seen.count() > 0 || len(me.stored()) > 0 {
		t.Errorf("%d wraps were published", count)
	}
	if strings.Contains(me.journal.String(), "secret words") {
		t.Error("the log holds the text of a panic")
	}
	run.send(strings.Repeat("a", giftwrap.MaxRumor-empty), "", other)
}

func TestCopies(t *testing.T) {
	t.Parallel()
	me := newPerson(t, commonRelay)
	one, two := newLocal(t, randomKey(t)), newLocal(t, randomKey(t))
	run, front := me.startAnswering(func(_ context.Context, to string) ([]relay.Receipt, error, bool) {
		return []relay.Receipt{{RelayURL: to, OKReceived: true, BroadcastSuccessful: true}}, nil, true
	})
	recipients := []string{two.PublicKey(), one.PublicKey()}
	slices.Sort(recipients)
	result := run.send("hello", "trade", recipients[1], recipients[0], me.public, recipients[1])
	var order []string
	for _, receipt := range result.Receipts {
		order = append(order, receipt.RelayURL)
	}
	if diff := cmp.Diff(append(slices.Clone(recipients), me.public), order); diff != "" {
		t.Errorf("copies (-want +got):\n%s", diff)
	}
	want := nostr.Tags{{"conversation", "trade"}, {"p", recipients[0]}, {"p", recipients[1]}}
	if diff := cmp.Diff(want, result.Rumor.Event.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	authors := map[string]bool{}
	front.mu.Lock()
	defer front.mu.Unlock()
	for _, wrap := range front.published {
		authors[wrap.PubKey] = true
		if age := time.Since(wrap.CreatedAt.Time()); age < -time.Second || age > 48*time.Hour+time.Minute {
			t.Errorf("a wrap is dated %v back", age)
		}
	}
	if len(authors) != 3 || authors[me.public] {
		t.Errorf("%d keys signed three wraps", len(authors))
	}
	if _, err := json.Marshal(result.Receipts); err != nil {
		t.Error(err)
	}
}

// The connection is lost while a message is being sent.
func TestSendOverBrokenRelay(t *testing.T) {
	t.Parallel()
	at := startRelay(t)
	me, other := newPerson(t, at), newPerson(t, at)
	run, there := me.start(), other.start()
	at.Relay.Break(sandbox.Faults{DropBeforeOK: true, Times: 1})
	_, err := run.Send(patient(t), textDraft("lost?", "", other.public))
	if coded := fault.From(err); coded.Code != fault.UnexpectedError || !strings.Contains(coded.Hint, "unknown") {
		t.Fatalf("error %+v", coded)
	}
	at.Relay.Heal()
	run.send("again", "", other.public)
	eventually(t, "the second message has come", func() bool { return slices.Contains(there.seen.texts(), "again") })
}

// Within one second clients show any order, so each message of a thread is later than all
// before it; nobody can drag them into the future.
func TestMessagesFollowEachOther(t *testing.T) {
	t.Parallel()
	me, other := newPerson(t, commonRelay), newLocal(t, randomKey(t))
	now := time.Now().Add(-time.Hour).Truncate(time.Second)
	me.now = func() time.Time { return now }
	at := nostr.Timestamp(now.Unix())
	run := me.start()
	receive := func(text string, createdAt nostr.Timestamp) {
		t.Helper()
		count := run.seen.count()
		rumor := textDraft(text, "", me.public).Event(other.PublicKey(), createdAt)
		wrap, err := giftwrap.Wrap(patient(t), other, rumor, me.public, at, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		me.deliver(*wrap)
		eventually(t, text+" has come", func() bool { return run.seen.count() > count })
	}
	for _, step := range []struct {
		received nostr.Timestamp // 0 for nothing
		want     nostr.Timestamp
	}{{0, at}, {0, at + 1}, {at + 30, at + 31}, {at + 3000, at + 32}, {at - 5, at + 33}} {
		if step.received != 0 {
			receive("of "+step.received.Time().String(), step.received)
		}
		if got := run.send("mine", "", other.PublicKey()).Rumor.Event.CreatedAt; got != step.want {
			t.Errorf("after %d: %d, want %d", step.received-at, got-at, step.want-at)
		}
	}
	if got := run.send("mine", "another", other.PublicKey()).Rumor.Event.CreatedAt; got != at {
		t.Errorf("in another thread: %d", got-at)
	}
	var sending sync.WaitGroup
	times := make([]nostr.Timestamp, 3)
	for i := range times {
		sending.Go(func() {
			sent, err := run.Send(patient(t), textDraft("at once", "third", other.PublicKey()))
			if err != nil {
				t.Error(err)
				return
			}
			times[i] = sent.Rumor.Event.CreatedAt
		})
	}
	sending.Wait()
	slices.Sort(times)
	if diff := cmp.Diff([]nostr.Timestamp{at, at + 1, at + 2}, times); diff != "" {
		t.Errorf("side by side: %s", diff)
	}
}
