package actions

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/media"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// An upload goes on unsigned when the remote signer has withdrawn its permission, but
// the session takes notice, as it does when an action fails for that.
func TestUploadNoticesASignerThatWithdrew(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{})
	product := onMarket(t, market)
	guest := market.Guests[0]
	phone := signInByPhone(t, product, guest)
	registry, err := product.runtime.Sessions(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	session, err := registry.Session(patient(t), guest.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	upload := func() (signed bool) {
		t.Helper()
		outcome, err := product.UploadImage(patient(t), request.Upload{Base64: "aGVsbG8gaG9zdHI=", Pubkey: guest.PublicKey})
		if err != nil {
			t.Fatal(err)
		}
		return outcome.Data.(media.Uploaded).Signed
	}
	if !upload() || session.Account().NeedsRecovery() {
		t.Fatal("a signer that signs was not used or put away")
	}
	phone.Behave(signerapp.Behaviour{Refuse: "No thanks"})
	if upload() || session.Account().NeedsRecovery() {
		t.Fatal("a person who says no is taken for a signer that withdrew its permission")
	}
	phone.Behave(signerapp.Behaviour{Refuse: "Not authorized"})
	if upload() {
		t.Error("signed by a signer that refuses")
	}
	if !session.Account().NeedsRecovery() {
		t.Error("the signer counts as usable")
	}
}

// signInByPhone signs a person in with a remote signer, as the bridge's page does.
func signInByPhone(t testing.TB, product *Product, person sandbox.Person) *signerapp.App {
	t.Helper()
	phone, err := signerapp.New(signerapp.Options{PrivateKey: person.PrivateKey, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(phone.Close)
	started, err := product.StartOAuthNostrConnect(patient(t), request.OAuthNostrConnect{RequestID: "phone"})
	if err != nil {
		t.Fatal(err)
	}
	if err := phone.Scan(patient(t), started.Data.(OAuthPending).NostrConnect); err != nil {
		t.Fatal(err)
	}
	if _, err := product.CompleteOAuthNostrConnect(patient(t), request.OAuthNostrConnect{RequestID: "phone", Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	return phone
}
