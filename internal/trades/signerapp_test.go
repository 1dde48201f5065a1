package trades

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/signer"
)

// hurriedClock runs forty times faster than the machine's, for a signer that waits for
// an app that is off.
type hurriedClock struct {
	relay.SystemClock
	started time.Time
}

const hurry = 40

func (c hurriedClock) Now() time.Time { return c.started.Add(hurry * time.Since(c.started)) }

func (c hurriedClock) AfterFunc(d time.Duration, f func()) func() bool {
	return c.SystemClock.AfterFunc(d/hurry, f)
}

// A host whose key is in a signer app sees who the guest is, at the cost of one
// decryption; while the app is off the booking shows all the same.
func TestHostWithASignerApp(t *testing.T) {
	t.Parallel()
	host, guest, escrow := people(t)
	travelling := guest.start()
	booked := travelling.begin(host.offer(escrow), escrow)
	booked.commit()

	key := host.account.Signer
	app, err := signerapp.New(signerapp.Options{PrivateKey: host.key, TransportKey: randomKey(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	address, err := app.Serve(patient(t), commonRelay.RelayURL)
	if err != nil {
		t.Fatal(err)
	}
	uri, err := signer.ParseBunkerURI(address)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := uri.Connection(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := signer.NewRemote(t.Context(), signer.Config{
		Connection: connection, Client: host.client(), Account: key.PublicKey(), Logger: zerolog.Nop(), Clock: hurriedClock{started: time.Now()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remote.Close)
	if err := remote.Connect(patient(t), uri.Secret()); err != nil {
		t.Fatal(err)
	}
	host.account.Signer, host.account.remote = remote, true

	app.Offline()
	hosting := host.newProcess()
	hosting.limits.signer = time.Second
	hosting.settle()
	item := hosting.awaitStage(booked.tradeID(), market.StageCommit, hosting.hostings)
	if got := item.Participants.Pubkey(market.RoleBuyer); got != booked.keys.Key.PublicKey() {
		t.Errorf("without the app the buyer is %s", got)
	}
	if err := app.Online(patient(t)); err != nil {
		t.Fatal(err)
	}
	hosting.Resume()
	eventually(t, "the guest is known", func() bool {
		items := hosting.hostings().Items
		return len(items) == 1 && items[0].Participants.ProvenPubkey(market.RoleBuyer) == guest.public
	})
	before := app.Count("nip44_decrypt")
	if resolved, err := hosting.ResolveTrade(patient(t), booked.tradeID(), patience); err != nil || resolved.Buyer != guest.public {
		t.Errorf("resolved %+v, %v", resolved, err)
	}
	if after := app.Count("nip44_decrypt"); after != before {
		t.Errorf("the app was asked %d times again", after-before)
	}
}
