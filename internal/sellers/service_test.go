package sellers

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
)

// wholeText is the configuration of the vectors' account in the development
// environment.
var wholeText = join("p "+escrowPubkey, "c "+codeHash,
	"o ETH 412346:"+zero+" hostr", "o BTC 412346:"+tBTC+" hostr", "o USD 412346:"+usdt+" hostr", "o BTC 33:"+zero+" hostr",
	strings.Join(claim, " "))

func TestFirstConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.service()
	w.mustEnsure(service, true)
	event := w.inForce()
	if diff := cmp.Diff(wholeText, text(event.Tags)); diff != "" || event.Content != "" || event.CreatedAt != 1_780_000_000 {
		t.Errorf("content %q, at %d, tags (-want +got):\n%s", event.Content, event.CreatedAt, diff)
	}
	w.mustEnsure(service, false)
	if count := w.published(); count != 1 {
		t.Errorf("published %d times", count)
	}
}

func TestConfigurationOfOtherClientsIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.now = time.Unix(1_700_000_000, 0) // behind the event's
	w.publish("Escrows I trust", lines(join("x y", "p aa", "o EUR 1:0x1 other", "o BTC 1:0x2")))
	w.mustEnsure(w.service(), true)
	event := w.inForce()
	want := strings.Replace(wholeText, "p "+escrowPubkey, join("x y", "p aa")+"p "+escrowPubkey, 1)
	want = strings.Replace(want, "o ETH", "o EUR 1:0x1 other\no ETH", 1)
	if diff := cmp.Diff(want, text(event.Tags)); diff != "" || event.Content != "Escrows I trust" || event.CreatedAt != 1_780_000_000 {
		t.Errorf("content %q, at %d, tags (-want +got):\n%s", event.Content, event.CreatedAt, diff)
	}
}

func TestNothingIsPublishedOnHalfAnAnswer(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]sandbox.Faults{
		"no EOSE": {NoEOSE: true}, "closed": {Closed: "error: busy"}, "dropped": {DropOnRequest: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.clock = hurriedClock{started: time.Now()}
			w.publish("", lines("p aa"))
			service := w.service()
			w.market.Relay.Break(faults)
			_, err := service.Ensure(patient(t))
			coded := fault.From(err)
			if err == nil || !coded.Retryable || !strings.Contains(coded.Message, "the one in force is not known") {
				t.Errorf("error %+v", coded)
			}
			if w.published() != 0 || w.account.signed.Load() != 0 || text(w.inForce().Tags) != "p aa\n" {
				t.Errorf("published %d times, signed %d", w.published(), w.account.signed.Load())
			}
		})
	}
}

func TestUnreachableRelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock = hurriedClock{started: time.Now()}
	w.market.Relay.Stop()
	service := w.service()
	if _, err := service.Ensure(patient(t)); err == nil || !fault.From(err).Retryable {
		t.Errorf("error %v", err)
	}
	if sells, err := service.Sells(patient(t)); err == nil || sells || !fault.From(err).Retryable {
		t.Errorf("sells %t, error %v", sells, err)
	}
}

func TestSwapProviderIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.service()
	w.boltz.down.Store(true)
	w.mustEnsure(service, true)
	if got := text(w.inForce().Tags); strings.Contains(got, "o BTC") || !strings.Contains(got, "o USD") {
		t.Errorf("without the provider:\n%s", got)
	}
	w.boltz.down.Store(false)
	w.mustEnsure(service, true) // asked again
	if diff := cmp.Diff(wholeText, text(w.inForce().Tags)); diff != "" {
		t.Errorf("with the provider (-want +got):\n%s", diff)
	}

	w.boltz.down.Store(true)
	w.mustEnsure(service, false) // remembered
	restarted := w.service()
	w.mustEnsure(restarted, false) // the BTC forms are not withdrawn
	if !strings.Contains(w.log.String(), `"message":"seller.swaps_unknown"`) {
		t.Errorf("log: %s", w.log)
	}
}

func TestNoSwapProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustEnsure(w.service(), true)
	service := w.serviceWith(Config{Relays: w.client(), Contracts: noContracts{}})
	w.mustEnsure(service, true)
	want := join("p "+escrowPubkey, "c "+codeHash, "o USD 412346:"+usdt+" hostr", strings.Join(claim, " "))
	if diff := cmp.Diff(want, text(w.inForce().Tags)); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

// noContracts has no code anywhere.
type noContracts struct{}

func (noContracts) Code(context.Context, int64, string) ([]byte, error) { return nil, nil }

func TestChainThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.service()
	w.node.set(func(n *rpcNode) { n.down = true })
	w.mustEnsure(service, true)
	without := strings.Replace(wholeText, "c "+codeHash+"\n", "", 1)
	if diff := cmp.Diff(without, text(w.inForce().Tags)); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	w.node.set(func(n *rpcNode) { n.down, n.code = false, map[string]string{} })
	w.mustEnsure(service, false) // there is no contract: no hash of nothing
	w.node.set(func(n *rpcNode) { n.code["0x663f3ad617193148711d28f5334ee4ed07016602"] = code })
	w.mustEnsure(service, true)
	if got := text(w.inForce().Tags); !strings.Contains(got, "c "+codeHash) {
		t.Errorf("tags:\n%s", got)
	}
	if !strings.Contains(w.log.String(), `"chainId":412346`) {
		t.Errorf("log: %s", w.log)
	}
}

func TestCallersShareOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.service()
	release, asked := make(chan struct{}), make(chan struct{})
	w.account.refuseWith(func(context.Context) error {
		close(asked)
		receive(t, release)
		return nil
	})
	gone := errors.New("the caller is gone")
	ctx, leave := context.WithCancelCause(patient(t))
	left := make(chan error, 1)
	go func() {
		_, err := service.Ensure(ctx)
		left <- err
	}()
	receive(t, asked)
	leave(gone)
	if err := receive(t, left); !errors.Is(err, gone) {
		t.Errorf("the caller that left got %v", err)
	}
	var callers sync.WaitGroup
	for range 5 {
		callers.Go(func() {
			if _, err := service.Ensure(patient(t)); err != nil {
				t.Error(err)
			}
		})
	}
	close(release)
	callers.Wait()
	if w.published() != 1 || w.account.signed.Load() != 1 {
		t.Errorf("published %d times, signed %d", w.published(), w.account.signed.Load())
	}
}

func TestSignerAndRelayThatRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.service()
	w.account.refuseWith(func(context.Context) error { return &signer.Rejected{Method: "sign_event", Text: "Not authorized"} })
	_, err := service.Ensure(patient(t))
	var rejected *signer.Rejected
	if !errors.As(err, &rejected) || !strings.Contains(fault.From(err).Message, "was not published: the signer rejected sign_event: Not authorized.") {
		t.Errorf("error %v", err)
	}
	service.limits.signer = time.Millisecond
	w.account.refuseWith(func(ctx context.Context) error {
		<-ctx.Done()
		return &signer.Unanswered{Method: "sign_event", Delivered: true}
	})
	if _, err := service.Ensure(patient(t)); err == nil || !fault.From(err).Retryable {
		t.Errorf("error %v", err)
	}
	service.limits.signer = patience
	w.account.refuseWith(func(context.Context) error { return nil })
	w.market.Relay.Break(sandbox.Faults{RefuseEvents: "blocked: not today"})
	_, err = service.Ensure(patient(t))
	if coded := fault.From(err); err == nil || !strings.Contains(coded.Message, "blocked: not today") || strings.Contains(coded.Message, "unexpected_error") {
		t.Errorf("error %v", err)
	}
	w.market.Relay.Heal()
	w.mustEnsure(service, true)
}

func TestWithoutASeedNothingIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.service()
	service.keys = keysOf{err: errors.New("no seed")}
	if _, err := service.Ensure(patient(t)); !errors.Is(err, service.keys.(keysOf).err) || w.published() != 0 {
		t.Errorf("error %v, published %d times", err, w.published())
	}
}

func TestCloseEndsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.service()
	asked := make(chan struct{})
	w.account.refuseWith(func(ctx context.Context) error {
		close(asked)
		<-ctx.Done()
		return ctx.Err()
	})
	outcome := make(chan error, 1)
	go func() {
		_, err := service.Ensure(context.Background())
		outcome <- err
	}()
	receive(t, asked)
	service.Close()
	if err := receive(t, outcome); err == nil || !strings.Contains(err.Error(), "the session was closed") {
		t.Errorf("error %v", err)
	}
}

func TestSells(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.service()
	if sells, err := service.Sells(patient(t)); sells || err != nil {
		t.Errorf("sells %t, error %v", sells, err)
	}
	listing := nostr.Event{Kind: 30402, CreatedAt: 1_779_999_999, Tags: lines("d 1\nt accommodation")}
	if err := w.account.Local.SignEvent(patient(t), &listing); err != nil {
		t.Fatal(err)
	}
	if err := w.market.Relay.Insert(patient(t), listing); err != nil {
		t.Fatal(err)
	}
	if sells, err := service.Sells(patient(t)); !sells || err != nil {
		t.Errorf("sells %t, error %v", sells, err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := service.Sells(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// hurriedClock runs forty times faster than the machine's.
type hurriedClock struct {
	relay.SystemClock
	started time.Time
}

const hurry = 40

func (c hurriedClock) Now() time.Time { return c.started.Add(hurry * time.Since(c.started)) }

func (c hurriedClock) AfterFunc(d time.Duration, f func()) func() bool {
	return c.SystemClock.AfterFunc(d/hurry, f)
}

// The address in the configuration is the account's public one.
func TestAddressIsThatOfIndexZero(t *testing.T) {
	t.Parallel()
	keys := vectorKeys(t).keys
	key, err := keys.EVM(0)
	if err != nil || key.Address() != vectorAddress {
		t.Fatalf("address %s, error %v", key.Address(), err)
	}
	signerAddress, err := derivation.PersonalSigner(ownershipMessage(vectorPubkey, vectorAddress), vectorProof)
	if err != nil || signerAddress != vectorAddress {
		t.Errorf("the proof is by %s, error %v", signerAddress, err)
	}
}
