package seeds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
)

func TestAccountWithItsKeyHere(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, false)
	service := d.start()
	seed := d.mustSeed(service)
	if !seed.Equal(d.derived) {
		t.Error("the seed is not the derived one")
	}
	events := d.backups()
	if len(events) != 1 || len(events[0].Tags) != 0 || events[0].PubKey != d.account.PublicKey() || events[0].CreatedAt != 1_780_000_000 {
		t.Fatalf("backups: %v", events)
	}
	plaintext, err := d.account.Local.NIP44Decrypt(patient(t), d.account.PublicKey(), events[0].Content)
	if want := `{"v":1,"seed":"` + seed.Hex() + `"}`; err != nil || plaintext != want {
		t.Errorf("the backup holds another text, error %v", err)
	}
	if waits := d.clock.waits(); !slices.Equal(waits, []time.Duration{0}) {
		t.Errorf("waited %v", waits)
	}
	if !service.isCompared() {
		t.Error("what was just published is still to be compared")
	}

	keys, err := service.Keys(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	want, err := derivation.NewKeys(seed)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := keys.TradeID(3)
	if wantID, _ := want.TradeID(3); id != wantID || id == "" {
		t.Errorf("trade id %s, want %s", id, wantID)
	}
}

func TestRemoteSignersAccount(t *testing.T) {
	t.Parallel()
	first := newDevice(t, commonRelay, true)
	seed := first.mustSeed(first.start())
	if asked := first.account.requests(); asked != "nip44_encrypt sign_event nip44_decrypt" {
		t.Errorf("the signer was asked for %s", asked)
	}
	if waits := first.clock.waits(); !slices.Equal(waits, readBackDelays[:]) {
		t.Errorf("waited %v", waits)
	}

	// Another device of the account finds it, also one with the private key.
	for _, remote := range []bool{true, false} {
		other := newDevice(t, commonRelay, remote)
		if !other.mustSeed(other.start()).Equal(seed) {
			t.Error("another device has another seed")
		}
		if asked := other.account.requests(); asked != "nip44_decrypt" {
			t.Errorf("the signer was asked for %s", asked)
		}
	}
	if count := first.published(); count != 1 {
		t.Errorf("published %d times", count)
	}
}

func TestSeedsDrawnDiffer(t *testing.T) {
	t.Parallel()
	var seeds []derivation.Seed
	for _, name := range []string{"one", "other"} {
		t.Run(name, func(t *testing.T) {
			d := newDevice(t, commonRelay, true)
			seeds = append(seeds, d.mustSeed(d.start()))
		})
	}
	if seeds[0].Equal(seeds[1]) {
		t.Error("two accounts have one seed")
	}
}

func TestStoredSeedNeedsNoRelay(t *testing.T) {
	t.Parallel()
	market := startRelay(t)
	market.Relay.Stop()
	d := newDevice(t, market, true)
	d.relayClock = hurriedClock{started: time.Now()}
	d.store.seed = parsed(t, someSeed)
	service := d.start()
	if !d.mustSeed(service).Equal(parsed(t, someSeed)) {
		t.Error("the seed is not the stored one")
	}
	d.waitForLog("seed.backup_unknown")
	if asked := d.account.requests(); asked != "" {
		t.Errorf("the signer was asked for %s", asked)
	}

	// The comparison is made up for later, and not before its pause is over.
	if err := market.Relay.Resume(); err != nil {
		t.Fatal(err)
	}
	d.mustSeed(service)
	d.clock.advance(comparePause)
	d.mustSeed(service)
	d.waitFor("the backup was made", service.isCompared)
	if events := d.backups(); len(events) != 1 {
		t.Errorf("backups: %v", events)
	}
	if asked := d.account.requests(); asked != "nip44_encrypt sign_event" {
		t.Errorf("the signer was asked for %s", asked)
	}
}

// What the relay's answer must be before a seed counts as absent.
func TestSilenceIsNotAbsence(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]sandbox.Faults{
		"no EOSE":         {NoEOSE: true},
		"closed":          {Closed: "error: try again later"},
		"dropped":         {DropOnRequest: true},
		"half open":       {HalfOpen: true},
		"unreachable":     {RefuseConnections: true},
		"wants no client": {HandshakeStatus: 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			market := startRelay(t)
			market.Relay.Break(faults)
			var devices []*device
			var services []*Service
			for i, remote := range []bool{true, false} {
				d := newDevice(t, market, remote)
				d.relayClock = hurriedClock{started: time.Now()}
				devices, services = append(devices, d), append(services, d.start())
				d.mustFail(services[i], "could not be looked up")
				if asked := d.account.requests(); asked != "" {
					t.Errorf("remote signer %t: asked for %s", remote, asked)
				}
			}
			market.Relay.Heal() // the failure is not remembered
			if !devices[0].retry(services[0]).Equal(devices[1].retry(services[1])) {
				t.Error("the account has two seeds")
			}
		})
	}
}

func TestBackupThatComesBeforeTheSilenceCounts(t *testing.T) {
	t.Parallel()
	market := startRelay(t)
	d := newDevice(t, market, true)
	d.relayClock = hurriedClock{started: time.Now()}
	d.publishSeed(`{"v":1,"seed":"`+someSeed+`"}`, 1_700_000_000)
	market.Relay.Break(sandbox.Faults{NoEOSE: true})
	if !d.mustSeed(d.start()).Equal(parsed(t, someSeed)) {
		t.Error("the seed is not the one of the backup")
	}
}

func TestBackupIsReadForgivingly(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	d.publishSeed(`{"seed":" `+strings.ToUpper(someSeed)+`\n","v":"9","more":[]}`, 1_700_000_000)
	if !d.mustSeed(d.start()).Equal(parsed(t, someSeed)) {
		t.Error("the seed is not the one of the backup")
	}
	if count := d.published(); count != 0 {
		t.Errorf("published %d times", count)
	}
}

func TestSignerThatRefusesToDecrypt(t *testing.T) {
	t.Parallel()
	first := newDevice(t, commonRelay, true)
	seed := first.mustSeed(first.start())

	d := newDevice(t, commonRelay, true)
	service := d.start()
	d.account.refuseWith(func(context.Context, string) error {
		return &signer.Rejected{Method: "nip44_decrypt", Text: "Not authorized"}
	})
	err := d.mustFail(service, "cannot be read, so nothing was done: the signer rejected nip44_decrypt: Not authorized.")
	var rejected *signer.Rejected
	if !errors.As(err, &rejected) || !rejected.NotAuthorized() {
		t.Errorf("the signer's refusal is not in %v", err)
	}
	if asked := d.account.requests(); asked != "nip44_decrypt" {
		t.Errorf("the signer was asked for %s", asked)
	}
	d.account.refuseWith(nil)
	if !d.mustSeed(service).Equal(seed) {
		t.Error("the old seed was not found")
	}
	if count := d.published(); count != 1 {
		t.Errorf("published %d times", count)
	}
}

func TestSignerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	first := newDevice(t, commonRelay, true)
	first.mustSeed(first.start())
	for _, remote := range []bool{true, false} {
		d := newDevice(t, commonRelay, remote)
		service := d.start()
		service.limits.signer = time.Millisecond
		d.account.refuseWith(func(ctx context.Context, method string) error {
			<-ctx.Done()
			return &signer.Unanswered{Method: method, Delivered: true}
		})
		d.mustFail(service, "did not answer nip44_decrypt in time")
	}
	if count := first.published(); count != 1 {
		t.Errorf("published %d times", count)
	}
}

// A backup that nobody will ever read.
func TestUnreadableBackupIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, plaintext := range map[string]string{
		"other MAC": "", "no JSON": "seed", "list": "[]", "null": "null", "no seed": `{"v":1}`, "number": `{"seed":1}`,
		"short": `{"seed":"00aa"}`, "long": `{"seed":"` + someSeed + `00"}`, "other letters": `{"seed":"` + strings.Repeat("zz", 32) + `"}`,
		"other key": `{"SEED":"` + someSeed + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local, remote := newDevice(t, commonRelay, false), newDevice(t, commonRelay, true)
			if plaintext == "" {
				local.publishContent(strings.Repeat("AgAA", 40), 1_700_000_000)
			} else {
				local.publishSeed(plaintext, 1_700_000_000)
			}
			remote.mustFail(remote.start(), "cannot be read, so nothing was done")

			service := local.start()
			if !local.mustSeed(service).Equal(local.derived) {
				t.Error("the seed is not the derived one")
			}
			local.waitForLog("seed.backup_unreadable")
			local.start() // again, from the secret store
			local.mustSeed(local.start())
			if count := local.published(); count != 0 {
				t.Errorf("published %d times", count)
			}
			if strings.Contains(local.log.String()+remote.log.String(), someSeed) {
				t.Error("what was in the backup is in the log")
			}
		})
	}
}

func TestLocalAndRemoteSeedDiffer(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	d.publishSeed(`{"v":1,"seed":"`+strings.Repeat("ab", 32)+`"}`, 1_700_000_000)
	d.store.seed = parsed(t, someSeed)
	service := d.start()
	if !d.mustSeed(service).Equal(parsed(t, someSeed)) {
		t.Error("the stored seed is not in use")
	}
	d.waitForLog("seed.differs")
	if log := d.log.String(); strings.Contains(log, strings.Repeat("ab", 32)) || !strings.Contains(log, `"level":"error"`) {
		t.Errorf("log: %s", log)
	}
	d.clock.advance(time.Hour)
	d.mustSeed(service)
	if count := d.published(); count != 0 || !service.isCompared() {
		t.Errorf("published %d times, compared %t", count, service.isCompared())
	}
}

// Two devices of one account that both find nothing at the same moment.
func TestTwoDevicesAtOnce(t *testing.T) {
	t.Parallel()
	for _, kinds := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		t.Run(fmt.Sprintf("remote signers %t", kinds), func(t *testing.T) {
			t.Parallel()
			before, after := newMeeting(t, 2), newMeeting(t, 2)
			devices := [2]*device{}
			seeds := [2]derivation.Seed{}
			var running sync.WaitGroup
			for i, remote := range kinds {
				devices[i] = newDevice(t, commonRelay, remote)
				devices[i].clock.advance(time.Duration(i) * time.Second)
				service := devices[i].startWith(meetingRelays{devices[i].newClient(), before, after})
				running.Go(func() { seeds[i] = devices[i].mustSeed(service) })
			}
			running.Wait()
			if !seeds[0].Equal(seeds[1]) {
				t.Error("the account has two seeds")
			}
			third := newDevice(t, commonRelay, true)
			if !third.mustSeed(third.start()).Equal(seeds[0]) {
				t.Error("a third device has another seed")
			}
		})
	}
}

// A device whose person takes long to approve, while another device is quicker.
func TestSlowDeviceDoesNotReplaceTheSeed(t *testing.T) {
	t.Parallel()
	slow, quick := newDevice(t, commonRelay, true), newDevice(t, commonRelay, true)
	approve, asked := make(chan struct{}), make(chan struct{})
	slow.account.refuseWith(func(_ context.Context, method string) error {
		if method == "nip44_encrypt" {
			close(asked)
			receive(t, approve)
		}
		return nil
	})
	slowService := slow.start()
	var running sync.WaitGroup
	var slowSeed derivation.Seed
	running.Go(func() { slowSeed = slow.mustSeed(slowService) })
	receive(t, asked)
	seed := quick.mustSeed(quick.start())
	close(approve)
	running.Wait()
	if !slowSeed.Equal(seed) {
		t.Error("the account has two seeds")
	}
	if count := quick.published(); count != 1 {
		t.Errorf("published %d times", count)
	}
}

func TestOtherDeviceIsQuickerByAMoment(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	first := true
	// The other device's event is newer and comes in after ours was shown once.
	d.clock.sleep = func(_ context.Context, delay time.Duration) error {
		if delay > 0 && first {
			first = false
			d.publishSeed(`{"v":1,"seed":"`+someSeed+`"}`, 1_780_000_001)
		}
		return nil
	}
	if !d.mustSeed(d.start()).Equal(parsed(t, someSeed)) {
		t.Error("the seed that the relay holds is not in use")
	}
}

// The process ends between the publication and the entry in the secret store.
func TestCrashBeforeTheSeedIsStored(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{true, false} {
		t.Run(fmt.Sprintf("remote signer %t", remote), func(t *testing.T) {
			t.Parallel()
			d := newDevice(t, commonRelay, remote)
			d.store.fails = errors.New("the disk is full")
			service := d.start()
			if _, err := service.Seed(patient(t)); !errors.Is(err, d.store.fails) {
				t.Errorf("error %v", err)
			}
			service.Close()
			if events := d.backups(); len(events) != 1 {
				t.Fatalf("backups: %v", events)
			}
			d.store.fails = nil
			again := d.start()
			seed := d.mustSeed(again)
			other := newDevice(t, commonRelay, true)
			if !other.mustSeed(other.start()).Equal(seed) || d.published() != 1 {
				t.Errorf("published %d times", d.published())
			}
		})
	}
}

func TestUnreadableSecretStore(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	broken := errors.New("the keyring is locked")
	service, err := New(Config{Relays: d.newClient(), Account: d.account, Local: lockedStore{broken}, Clock: d.clock})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	if _, err := service.Seed(patient(t)); !errors.Is(err, broken) || d.published() != 0 {
		t.Errorf("error %v, published %d times", err, d.published())
	}
}

type lockedStore struct{ err error }

func (l lockedStore) Seed(context.Context) (derivation.Seed, bool, error) {
	return derivation.Seed{}, false, l.err
}
func (l lockedStore) SetSeed(context.Context, derivation.Seed) error { return l.err }

func TestRelayThatRefusesTheBackup(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]sandbox.Faults{
		"refused": {RefuseEvents: "blocked: not today"}, "no OK": {NoOK: true}, "dropped": {DropBeforeOK: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			market := startRelay(t)
			d := newDevice(t, market, true)
			d.relayClock = hurriedClock{started: time.Now()}
			service := d.start()
			market.Relay.Break(faults)
			d.mustFail(service, "newly generated account seed could not be published")
			market.Relay.Heal()
			seed := d.retry(service)
			other := newDevice(t, market, true)
			if !other.mustSeed(other.start()).Equal(seed) {
				t.Error("another device has another seed")
			}
		})
	}
}

func TestRefusedBackupOfADerivedSeed(t *testing.T) {
	t.Parallel()
	market := startRelay(t)
	d := newDevice(t, market, false)
	service := d.start()
	market.Relay.Break(sandbox.Faults{RefuseEvents: "blocked: not today"})
	_, err := service.Seed(patient(t))
	coded := fault.From(err)
	if err == nil || !coded.Retryable || !strings.Contains(coded.Message, "blocked: not today") || strings.Contains(coded.Message, "unexpected_error") {
		t.Errorf("error %+v", coded)
	}
	// It can be derived at any time, so the next call goes on with it.
	if !d.mustSeed(service).Equal(d.derived) {
		t.Error("the seed is not the derived one")
	}
	d.waitForLog("seed.backup_failed")
	market.Relay.Heal()
	d.clock.advance(comparePause)
	d.mustSeed(service)
	d.waitFor("the backup was made", service.isCompared)
	if events := d.backups(); len(events) != 1 {
		t.Errorf("backups: %v", events)
	}
}

// forgetful accepts events and shows none.
type forgetful struct{ Relays }

func TestRelayThatDoesNotShowTheBackup(t *testing.T) {
	t.Parallel()
	remote := newDevice(t, commonRelay, true)
	remote.mustFail(remote.startWith(newForgetful(remote)), "it has accepted the backup but does not show it")
	local := newDevice(t, commonRelay, false)
	service := local.startWith(newForgetful(local))
	if !local.mustSeed(service).Equal(local.derived) {
		t.Error("the seed is not the derived one")
	}
	if waits := local.clock.waits(); !slices.Equal(waits, readBackDelays[:]) {
		t.Errorf("waited %v", waits)
	}
	local.waitForLog("seed.backup_not_shown")
}

func TestSignerThatRefusesToWrite(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"nip44_encrypt", "sign_event"} {
		d := newDevice(t, commonRelay, true)
		service := d.start()
		d.account.refuseWith(func(_ context.Context, asked string) error {
			if asked == method {
				return &signer.Rejected{Method: method, Text: "no"}
			}
			return nil
		})
		d.mustFail(service, "could not be published to the Hostr relay: the signer rejected "+method+": no.")
		if count := d.published(); count != 0 {
			t.Errorf("published %d times", count)
		}
	}
}

// A signer that encrypts for somebody else: its backup would be lost.
func TestBackupThatCannotBeReadBack(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	service := d.start()
	d.account.refuseWith(func(_ context.Context, method string) error {
		if method == "nip44_decrypt" {
			return &signer.Rejected{Method: method, Text: "no"}
		}
		return nil
	})
	d.mustFail(service, "the backup it shows cannot be read")
	if asked := d.account.requests(); asked != "nip44_encrypt sign_event nip44_decrypt" {
		t.Errorf("the signer was asked for %s", asked)
	}
}

func TestCallersShareOneRun(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	service := d.start()
	release, asked := make(chan struct{}), make(chan struct{})
	d.account.refuseWith(func(_ context.Context, method string) error {
		if method == "nip44_encrypt" {
			close(asked)
			receive(t, release)
		}
		return nil
	})
	ctx, leave := context.WithCancelCause(patient(t))
	gone := make(chan error, 1)
	go func() {
		_, err := service.Keys(ctx)
		gone <- err
	}()
	receive(t, asked)
	leave(errGone)
	if err := receive(t, gone); !errors.Is(err, errGone) {
		t.Errorf("the caller that left got %v", err)
	}
	var callers sync.WaitGroup
	for range 5 {
		callers.Go(func() { d.mustSeed(service) })
	}
	close(release)
	callers.Wait()
	if asked := d.account.requests(); asked != "nip44_encrypt sign_event nip44_decrypt" || d.store.sets != 1 {
		t.Errorf("the signer was asked for %s, stored %d times", asked, d.store.sets)
	}
}

func TestCloseEndsTheRun(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	service := d.start()
	asked := make(chan struct{})
	d.account.refuseWith(func(ctx context.Context, _ string) error {
		close(asked)
		<-ctx.Done()
		return ctx.Err()
	})
	outcome := make(chan error, 1)
	go func() {
		_, err := service.Seed(context.Background())
		outcome <- err
	}()
	receive(t, asked)
	service.Close()
	if err := receive(t, outcome); err == nil || !strings.Contains(err.Error(), "the session was closed") {
		t.Errorf("error %v", err)
	}
	if _, err := service.Seed(patient(t)); err == nil || !fault.From(err).Retryable {
		t.Errorf("after Close: %v", err)
	}
}

func TestRestartAsksTheSignerNothing(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	seed := d.mustSeed(d.start())
	d.account.requests()
	service := d.start()
	d.mustSeed(service)
	d.waitFor("the seeds were compared", service.isCompared)
	if asked := d.account.requests(); asked != "" {
		t.Errorf("the signer was asked for %s", asked)
	}

	// Another event under the same account is read, and a mark of another seed is none.
	d.publishSeed(`{"v":1,"seed":"`+seed.Hex()+`"}`, 1_790_000_000)
	for range 2 {
		service = d.start()
		d.mustSeed(service)
		d.waitFor("the seeds were compared", service.isCompared)
	}
	if asked := d.account.requests(); asked != "nip44_decrypt" {
		t.Errorf("the signer was asked for %s", asked)
	}
	d.store.seed = parsed(t, someSeed)
	d.mustSeed(d.start())
	d.waitForLog("seed.differs")
}

func TestBrokenMemoryOnlyCostsAQuestion(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	d.memory.err = errors.New("the database is locked")
	d.mustSeed(d.start())
	d.account.requests()
	service := d.start()
	d.mustSeed(service)
	d.waitFor("the seeds were compared", service.isCompared)
	if asked := d.account.requests(); asked != "nip44_decrypt" {
		t.Errorf("the signer was asked for %s", asked)
	}
	d.waitForLog("seed.mark_unreadable")
	d.waitForLog("seed.mark_not_stored")
}

func TestPanicsStayInTheRun(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	service := d.start()
	d.account.refuseWith(func(context.Context, string) error { panic(someSeed) })
	if _, err := service.Seed(patient(t)); err == nil || strings.Contains(err.Error(), someSeed) {
		t.Errorf("error %v", err)
	}
	d.account.refuseWith(nil)
	d.mustSeed(service)
}

func TestNoEntropyNoSeed(t *testing.T) {
	t.Parallel()
	d := newDevice(t, commonRelay, true)
	broken := errors.New("no entropy")
	service, err := New(Config{Relays: d.newClient(), Account: d.account, Local: d.store, Random: iotest.ErrReader(broken)})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	if _, err := service.Seed(patient(t)); !errors.Is(err, broken) || d.published() != 0 {
		t.Errorf("error %v, published %d times", err, d.published())
	}
}

func TestNewChecksTheAccount(t *testing.T) {
	t.Parallel()
	remote, local := newDevice(t, nil, true), newDevice(t, nil, false)
	for name, config := range map[string]Config{
		"a remote signer with a derived seed": {Account: remote.account, Derived: local.derived},
		"a private key without one":           {Account: local.account},
		"no public key":                       {Account: nobody{remote.account}},
	} {
		if _, err := New(config); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

type nobody struct{ Account }

func (nobody) PublicKey() string { return "" }
