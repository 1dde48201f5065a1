package hostrdaemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	hostr "hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// TestBookingThroughRestarts has a guest, a host and an escrow operator go through
// three trades in one daemon, as under a bridge. The daemon ends after every step: in
// one run by the end of its input after the even steps and where it stands after the
// odd ones, in the other the other way round.
func TestBookingThroughRestarts(t *testing.T) {
	t.Parallel()
	ends := []func(*child){(*child).end, (*child).kill}
	for name, test := range map[string]struct {
		signerApp bool
		first     int
	}{
		"guest with a signer app": {true, 0},
		"guest with a key":        {false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bridge := &device{home: newHome(t)}
			b := newBooking(t, test.signerApp, bridge, bridge, bridge)
			for i, step := range bookingSteps {
				b.take(step)
				bridge.again(ends[(i+test.first)%2])
			}
			b.lookForSecrets()
		})
	}
}

// TestBookingAcrossDaemons is the same trades with a daemon for each.
func TestBookingAcrossDaemons(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	b := newBooking(t, true, &device{home: h}, &device{home: h.device()}, &device{home: h.device()})
	for _, step := range bookingSteps {
		b.take(step)
	}
	b.lookForSecrets()
}

// TestKilledWhileOffering kills the daemon with an offer under way, several times: no
// trade id may come again, since the host may have seen it.
func TestKilledWhileOffering(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	b := newBooking(t, false, &device{home: h}, &device{home: h.device()}, &device{home: h.device()})
	b.guest.signInByKey()
	known := make(map[string]bool)
	for round := range 3 {
		b.guest.updates()
		tradeID := b.preview(stayOf(round)).TradeID
		if known[tradeID] {
			t.Fatalf("round %d: the trade id of a killed offer comes again", round)
		}
		known[tradeID] = true
		before := len(b.wraps(b.host.PublicKey))
		h.market.Relay.Break(sandbox.Faults{NoOK: true})
		b.guest.daemon.send("callAction", actionParams{Action: "hostr.orders.negotiateOffer", Pubkey: b.guest.PublicKey, Input: b.offer(stayOf(round), false)})
		b.eventually("the offer has left", func() bool { return len(b.wraps(b.host.PublicKey)) > before })
		b.guest.daemon.kill()
		h.market.Relay.Heal()
		b.guest.device.spawn()
	}
	last := data[orderData](t, b.guest.do("hostr.orders.negotiateOffer", b.offer(stayOf(4), false)))
	if known[last.TradeID] {
		t.Error("the trade id of a killed offer comes again")
	}
	b.host.signInByKey()
	b.eventually("the host has every offer", func() bool { return len(b.host.updates().Threads) == len(known)+1 })
	for _, thread := range b.host.updates().Threads {
		if len(thread.OrderRequests) != 1 {
			t.Errorf("%d offers with one trade id", len(thread.OrderRequests))
		}
	}
}

// device is a bridge's place, with one daemon after another.
type device struct {
	home   *home
	daemon *child
	ended  []*child
}

func (d *device) spawn() { d.daemon = d.home.spawn() }

// again ends the daemon and starts the next.
func (d *device) again(end func(*child)) {
	end(d.daemon)
	d.ended = append(d.ended, d.daemon)
	d.spawn()
}

// party is somebody with an account on a device.
type party struct {
	sandbox.Person
	*device
	// phone is nil for who signs in with the key.
	phone *signerapp.App
	other *otherClient
}

func (p *party) do(action string, input any) envelope {
	p.home.t.Helper()
	return p.daemon.call(p.PublicKey, action, input)
}

func (p *party) signInByKey() {
	p.home.t.Helper()
	p.daemon.signInWithKey(p.Person)
}

// booking is the way of three parties through their trades.
type booking struct {
	t                   *testing.T
	home                *home
	guest, host, escrow *party
	place               place
	// first is negotiated, booked, and cancelled by the host; second is booked as it is
	// listed and cancelled by the guest; third never becomes public.
	first, second, third string
	agreed               hostr.Order  // the guest's acceptance in the first trade
	commit, confirmation *nostr.Event // the public orders of the first trade
	secondCommit         *nostr.Event
	// said are texts that only the parties may read.
	said []string
}

func newBooking(t *testing.T, signerApp bool, guest, host, escrow *device) *booking {
	t.Helper()
	b := &booking{t: t, home: guest.home}
	for _, device := range []*device{guest, host, escrow} {
		device.home.t = t
		if device.daemon == nil {
			device.spawn()
		}
	}
	at := b.home.market
	b.guest, b.host, b.escrow = &party{Person: at.Guests[0], device: guest}, &party{Person: at.Hosts[0], device: host}, &party{Person: at.Escrow, device: escrow}
	for _, party := range b.parties() {
		party.other = newOtherClient(t, at.RelayURL, party.PrivateKey)
	}
	if signerApp {
		b.guest.phone = b.home.phone(b.guest.Person)
	}
	b.place = b.openPlace()
	return b
}

func (b *booking) parties() []*party { return []*party{b.guest, b.host, b.escrow} }

// take does a step, and says in which step the test failed.
func (b *booking) take(step bookingStep) {
	b.t.Helper()
	done := false
	defer func() {
		if !done || b.t.Failed() {
			b.t.Logf("in the step %q", step.name)
		}
	}()
	step.take(b)
	done = true
	if b.t.Failed() {
		b.t.FailNow()
	}
}

// eventually polls until something has come about.
func (b *booking) eventually(what string, reached func() bool) {
	b.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !reached() {
		select {
		case <-ticker.C:
		case <-deadline:
			b.t.Fatalf("it never came about that %s\n%s", what, b.logs())
		}
	}
}

func (b *booking) logs() string {
	var logs strings.Builder
	for _, party := range b.parties() {
		fmt.Fprintf(&logs, "daemon of the %s:\n%s\n", party.Role, party.daemon.log())
	}
	return logs.String()
}

// wraps are the private messages on the relay for somebody.
func (b *booking) wraps(pubkey string) []nostr.Event {
	b.t.Helper()
	found, err := b.home.market.Relay.Query(within(b.t), nostr.Filter{Kinds: []int{nostr.KindGiftWrap}, Tags: nostr.TagMap{"p": {pubkey}}})
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// lookForSecrets looks for what was said and for every key in all that the daemons
// wrote. The answers hold what was said, and each is a whole line.
func (b *booking) lookForSecrets() {
	b.t.Helper()
	if len(b.said) < 8 {
		b.t.Fatalf("only %d texts were said", len(b.said))
	}
	var keys []string
	for _, party := range b.parties() {
		keys = append(keys, party.NSec, party.PrivateKey)
		seed, derived := b.seedOf(party)
		keys = append(keys, seed)
		for index := range uint32(6) {
			key, err := derived.Trade(index)
			if err != nil {
				b.t.Fatal(err)
			}
			keys = append(keys, key.Hex())
		}
	}
	if b.guest.phone != nil {
		keys = append(keys, b.guest.home.clientKey(b.guest.PublicKey))
	}
	seen := make(map[*device]bool)
	for _, party := range b.parties() {
		if seen[party.device] {
			continue
		}
		seen[party.device] = true
		party.again((*child).end)
		for i, daemon := range party.ended {
			b.absent(fmt.Sprintf("log %d", i), daemon.log(), keys, b.said)
			b.absent(fmt.Sprintf("answers of daemon %d", i), daemon.output(), keys)
			wholeLines(b.t, daemon.output())
		}
		party.home.eachFile(func(path, content string) {
			if path != party.home.secretsFile() {
				b.absent(filepath.Base(path), content, keys, b.said)
			}
		})
	}
}

func (b *booking) absent(where, content string, secrets ...[]string) {
	b.t.Helper()
	for kind, texts := range secrets {
		for i, text := range texts {
			if len(text) < 12 {
				b.t.Fatalf("secret %d of kind %d has %d characters", i, kind, len(text))
			}
			if strings.Contains(content, text) {
				b.t.Errorf("secret %d of kind %d is in %s", i, kind, where)
			}
		}
	}
}

func wholeLines(t *testing.T, output string) {
	t.Helper()
	for line := range bytes.Lines([]byte(output)) {
		if !bytes.HasSuffix(line, []byte("\n")) || !json.Valid(line) || line[0] != '{' {
			t.Errorf("no whole line of JSON: %.200q", line)
		}
	}
}
