package actions

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/request"
	"hostr-daemon/internal/sandbox"
)

// Spec 20 §2: a session key is any text; only an account's npub is another word for it.
func TestSessionKey(t *testing.T) {
	t.Parallel()
	npub, err := nip19.EncodePublicKey(stranger)
	if err != nil {
		t.Fatal(err)
	}
	nsec, err := nip19.EncodePrivateKey(stranger)
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"":                        "",
		" \t":                     "",
		stranger:                  stranger,
		strings.ToUpper(stranger): strings.ToUpper(stranger),
		npub:                      stranger,
		" " + npub + "\n":         stranger,
		npub + "x":                npub + "x",
		"npub1":                   "npub1",
		nsec:                      nsec,
		"an MCP session":          "an MCP session",
	} {
		if got := sessionKey(given); got != want {
			t.Errorf("%q is the session %q, want %q", given, got, want)
		}
	}
}

// An account may be named by its npub wherever a method takes a pubkey, signing out
// above all.
func TestAccountByItsNPub(t *testing.T) {
	t.Parallel()
	market := startMarket(t, sandbox.Options{})
	product := onMarket(t, market)
	account := asHost(t, product, market)
	npub, err := nip19.EncodePublicKey(account)
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{account, npub} {
		if _, failure := call(t, product, "hostr.profile.show", named, "{}"); failure != nil {
			t.Errorf("%s: %v", named, failure)
		}
	}
	visible, err := product.VisibleActions(patient(t), npub)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(visible); err != nil || !strings.Contains(string(text), `"pubkey":"`+npub+`"`) {
		t.Errorf("the pubkey is not shown as given: %v", err)
	}
	outcome, err := product.LogoutSession(patient(t), npub)
	if err != nil {
		t.Fatal(err)
	}
	if want := (SignedOut{Pubkey: account, SignedOut: true}); outcome.Data != want {
		t.Errorf("signing out tells %v, want %v", outcome.Data, want)
	}
	if _, failure := call(t, product, "hostr.profile.show", account, "{}"); failure == nil || failure.Code != fault.AuthRequired ||
		!strings.Contains(failure.Message, "this account is not signed in here") {
		t.Errorf("after signing out: %v", failure)
	}
}

// What is missing is named, and an id with a slip finds the one that was meant.
func TestCallsWithoutAPubkey(t *testing.T) {
	t.Parallel()
	product := newProduct(t, nowhere(t))
	for id, want := range map[string]struct{ message, path, hint string }{
		"hostr.session.connect":       {"the parameter pubkey, which is missing", "pubkey", ""},
		"hostr.listings.availability": {"the parameter pubkey, which is missing", "pubkey", ""},
		"hostr.trips.list":            {"sign in with hostr.session.connect", "", ""},
		"hostr_listings_search":       {"sign in with hostr.session.connect", "", "Did you mean hostr.listings.search?"},
		"hostr.nothing.like.it":       {"sign in with hostr.session.connect", "", ""},
	} {
		_, failure := call(t, product, id, "", "{}")
		if failure == nil || failure.Code != fault.AuthRequired || failure.Details != nil ||
			!strings.Contains(failure.Message, want.message) || failure.Path != want.path || failure.Hint != want.hint {
			t.Errorf("%s: %v, want %v", id, failure, want)
		}
	}
	_, err := product.CallAction(patient(t), request.Action{ID: "Hostr_listing_Search", Pubkey: "laptop"})
	if failure := fault.From(err); failure.Code != fault.UnknownAction || failure.Hint != "Did you mean hostr.listings.search?" {
		t.Errorf("an unknown id: %v", failure)
	}
}
