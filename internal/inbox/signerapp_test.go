package inbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/signer"
)

// phone is a person whose key is held by a signer app, reached over the same relay.
type phone struct {
	*person
	app    *signerapp.App
	holder *signer.Holder
	run    *process
	// refused counts what the service was told of.
	refused atomic.Int32
}

// newPhone connects a signer app to a process that is not started yet.
func newPhone(t testing.TB, at *sandbox.Market) *phone {
	t.Helper()
	p := &phone{person: newPerson(t, at)}
	p.relayClock = hurriedClock{started: time.Now()}
	var err error
	if p.app, err = signerapp.New(signerapp.Options{PrivateKey: p.key, TransportKey: randomKey(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.app.Close)
	if p.holder, err = signer.NewHolder(p.public, true); err != nil {
		t.Fatal(err)
	}
	p.person.app = &testAccount{Account: p.holder, remote: true, asked: map[string]int{}}
	client, closeClient := p.newClient()
	address, err := p.app.Serve(patient(t), at.RelayURL)
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
		Connection: connection, Client: client, Account: p.public, Logger: zerolog.Nop(), Clock: p.relayClock,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Connect(patient(t), uri.Secret()); err != nil {
		t.Fatal(err)
	}
	if err := p.holder.Set(remote); err != nil {
		t.Fatal(err)
	}
	config := p.config(client)
	config.NotAuthorized = func(err error) {
		var rejected *signer.Rejected
		if errors.As(err, &rejected) {
			p.refused.Add(1)
		}
		_ = p.holder.Set(nil) // As the session does that needs to be restored.
	}
	p.run = &process{Service: New(config), person: p.person, client: client, seen: &rumors{}}
	p.run.OnRumor(p.run.seen.add)
	t.Cleanup(func() {
		p.run.Service.Close()
		p.holder.Close()
		closeClient()
	})
	return p
}

func (p *phone) awaitAsked(method string) {
	p.t.Helper()
	err := p.app.WaitFor(patient(p.t), func(all []signerapp.Request, _ int) bool {
		for _, request := range all {
			if request.Method == method {
				return true
			}
		}
		return false
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// With a real signer app: each message is asked for once, own ones never.
func TestSignerApp(t *testing.T) {
	t.Parallel()
	at := startRelay(t)
	me, other := newPhone(t, at), newPerson(t, at)
	texts := make([]string, 10)
	for i := range texts {
		texts[i] = fmt.Sprint("message ", i)
	}
	me.write(newLocal(t, randomKey(t)), texts...)
	me.app.Behave(signerapp.Behaviour{DelayMillis: 5})
	me.run.awaitLive()
	me.run.awaitTexts(texts...)
	me.run.send("mine", "", other.public)
	other.start().awaitTexts("mine")
	at.Relay.Drop()
	me.deliver(me.made(newLocal(t, randomKey(t)), "after the drop")...)
	me.run.awaitTexts(append(texts, "mine", "after the drop")...)
	if decrypted := me.app.Count("nip44_decrypt"); decrypted != 2*11 {
		t.Errorf("%d decryptions of 11 messages", decrypted)
	}
	if encrypted := me.app.Count("nip44_encrypt"); encrypted != 2 {
		t.Errorf("%d encryptions of two copies", encrypted)
	}
}

// The signer is offline while the history comes, and then back.
func TestSignerAppOffline(t *testing.T) {
	t.Parallel()
	me := newPhone(t, startRelay(t))
	me.write(newLocal(t, randomKey(t)), "one", "two", "three")
	me.app.Behave(signerapp.Behaviour{Methods: []string{"nip44_decrypt"}, Silent: true})
	me.run.Start()
	me.awaitAsked("nip44_decrypt")
	me.app.Offline()
	if err := me.run.Await(patient(t), time.Millisecond); err != nil || me.run.Live() || me.run.seen.count() > 0 {
		t.Errorf("%v, live %t, %d messages", err, me.run.Live(), me.run.seen.count())
	}
	me.app.Behave(signerapp.Behaviour{})
	if err := me.app.Online(patient(t)); err != nil {
		t.Fatal(err)
	}
	me.run.awaitLive()
	me.run.awaitTexts("one", "two", "three")
}

// A signer that has forgotten us is told to the session, and asked no more.
func TestSignerAppRevoked(t *testing.T) {
	t.Parallel()
	me := newPhone(t, startRelay(t))
	me.run.awaitLive()
	me.app.Revoke()
	me.deliver(me.made(newLocal(t, randomKey(t)), "who reads this?")...)
	eventually(t, "the session was told", func() bool { return me.refused.Load() > 0 })
	eventually(t, "nobody is asked", func() bool { return me.holder.Signer() == nil })
	if err := me.holder.Set(newLocal(t, me.key)); err != nil {
		t.Fatal(err)
	}
	me.run.Resume()
	me.run.awaitTexts("who reads this?")
	if refused := me.refused.Load(); refused != 1 {
		t.Errorf("the session was told %d times", refused)
	}
}

// One message that the signer does not decrypt does not keep the others.
func TestSignerAppRefuses(t *testing.T) {
	t.Parallel()
	me := newPhone(t, startRelay(t))
	me.write(newLocal(t, randomKey(t)), "one", "two")
	me.app.Behave(signerapp.Behaviour{Methods: []string{"nip44_decrypt"}, Times: 1, Refuse: "not today"})
	me.run.Start()
	me.awaitAsked("nip44_decrypt")
	me.run.awaitLive()
	me.run.Resume()
	me.run.awaitTexts("one", "two")
}

// A signer that answers wrongly does so again: that trying again helps is said as its own
// error says it, as for every other step.
func TestSignerAppTampers(t *testing.T) {
	t.Parallel()
	me := newPhone(t, startRelay(t))
	me.run.Start()
	me.run.awaitLive()
	me.app.Behave(signerapp.Behaviour{Methods: []string{"sign_event"}, Tamper: signerapp.TamperContent})
	_, err := me.run.Send(patient(t), textDraft("a", "", newLocal(t, randomKey(t)).PublicKey()))
	var wrong *signer.WrongAnswer
	if !errors.As(err, &wrong) || fault.From(err).Retryable {
		t.Errorf("the error is %v", err)
	}
}

var _ relay.Account = (*testAccount)(nil)
