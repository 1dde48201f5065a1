package market_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func TestTradeKeyAuthorization(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	terms := vectors.buyerTerms()
	checkDraft(t, market.DraftTradeKeyAuthorization(terms, 1800000000), vectors.TradeKeyAuthorization.Event)
	authorization, err := market.DecodeTradeKeyAuthorization(eventOf(t, vectors.TradeKeyAuthorization.Event))
	if err != nil || !authorization.Authorizes(terms) {
		t.Fatalf("%v, %+v", err, authorization)
	}
	for name, change := range map[string]func(*market.TradeKeyTerms){
		"identity": func(t *market.TradeKeyTerms) { t.Identity = author }, "participant": func(t *market.TradeKeyTerms) { t.Participant = author },
		"role": func(t *market.TradeKeyTerms) { t.Role = market.RoleEscrow }, "listing": func(t *market.TradeKeyTerms) { t.ListingAnchor += "x" },
		"trade": func(t *market.TradeKeyTerms) { t.TradeID += "x" },
	} {
		changed := terms
		change(&changed)
		if authorization.Authorizes(changed) {
			t.Errorf("another %s is authorized", name)
		}
	}
	authorization.Event.Sig = ""
	if authorization.Authorizes(terms) {
		t.Error("an unsigned event authorizes")
	}
	for name, content := range map[string]string{
		"no role": `{"participantPubkey":"p"}`, "no participant": `{"role":"buyer"}`, "version": `{"version":"x","role":"buyer","participantPubkey":"p"}`, "no object": `"x"`,
	} {
		_, err := market.DecodeTradeKeyAuthorization(&nostr.Event{Kind: market.KindTradeKeyAuthorization, Content: content})
		if !errors.Is(err, market.ErrNotTradeKeyAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlanParticipants(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	tags := vectors.plan(t, "", 1)
	for i, proof := range vectors.ParticipantProofs {
		if diff := cmp.Diff(proof.Tag, tags[2+i]); diff != "" {
			t.Errorf("%s: %s", proof.Name, diff)
		}
	}
	fail := func(string, string) (string, error) { return "", errors.New("no ink") }
	for name, test := range map[string]struct {
		participants []market.PlannedParticipant
		encrypt      market.Encrypt
		problem      string
	}{
		"nobody":           {nil, fail, "needs participants"},
		"no role":          {[]market.PlannedParticipant{{Pubkey: "p", Identity: "p"}}, fail, "lacks"},
		"no pubkey":        {[]market.PlannedParticipant{{Role: "buyer", Identity: "p"}}, fail, "lacks"},
		"no identity":      {[]market.PlannedParticipant{{Role: "buyer", Pubkey: "p"}}, fail, "lacks"},
		"no authorization": {[]market.PlannedParticipant{{Role: "buyer", Pubkey: "p", Identity: "q"}}, fail, "authorization"},
		"no private key":   {[]market.PlannedParticipant{{Role: "buyer", Pubkey: "p", Identity: "q", Authorization: "x"}}, nil, "private key"},
		"no encryption":    {[]market.PlannedParticipant{{Role: "buyer", Pubkey: "p", Identity: "q", Authorization: "x"}}, fail, "no ink"},
	} {
		if _, err := market.PlanParticipants(test.participants, test.encrypt); err == nil || !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenProof(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	keys := map[string]string{
		vectors.Parties.Seller.PublicKey:   vectors.Parties.Seller.PrivateKey,
		vectors.Parties.TradeKey.PublicKey: vectors.Parties.TradeKey.PrivateKey,
		vectors.Parties.Escrow.PublicKey:   vectors.Parties.Escrow.PrivateKey,
	}
	for _, raw := range [][]byte{vectors.NegotiateOrder, vectors.PublicTrade.CommitOrder} {
		order := readOrder(t, eventOf(t, raw))
		for _, proof := range order.Proofs {
			opened, err := order.OpenProof(proof, decryptWith(keys[proof.Recipient]))
			if err != nil || opened.Identity != vectors.Parties.Buyer.PublicKey || opened.Plaintext != vectors.TradeKeyAuthorization.Plaintext {
				t.Errorf("%s: %v, %+v", proof.Recipient, err, opened)
			}
		}
		if len(order.Proofs) != len(order.Participants) {
			t.Errorf("%d proofs for %d participants", len(order.Proofs), len(order.Participants))
		}
	}
}

func TestOpenProofRefuses(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	order := readOrder(t, eventOf(t, vectors.NegotiateOrder))
	refused := errors.New("the signer refused")
	plain := func(text string) market.Decrypt {
		return func(string, string, string) (string, error) { return text, nil }
	}
	genuine := vectors.TradeKeyAuthorization.Plaintext
	type opening struct {
		order   market.Order
		proof   market.ParticipantProof
		decrypt market.Decrypt
	}
	for name, change := range map[string]func(*opening){
		"scheme":        func(o *opening) { o.proof.Scheme = "nip04" },
		"participant":   func(o *opening) { o.proof.Participant = "" },
		"recipient":     func(o *opening) { o.proof.Recipient = "" },
		"other key":     func(o *opening) { o.proof.Participant = author },
		"other role":    func(o *opening) { o.proof.Role = market.RoleSeller },
		"other trade":   func(o *opening) { o.order.TradeID = "x" },
		"other listing": func(o *opening) { o.order.ListingAnchor = "x" },
		"hash":          func(o *opening) { o.proof.PayloadHash = strings.ToUpper(o.proof.PayloadHash) },
		"text":          func(o *opening) { o.decrypt = plain(genuine + " ") },
		"wrong key":     func(o *opening) { o.decrypt = decryptWith(vectors.Parties.Escrow.PrivateKey) },
		"no event":      func(o *opening) { o.decrypt, o.proof.PayloadHash = plain("{}"), sha256Hex("{}") },
		"another kind": func(o *opening) {
			o.decrypt, o.proof.PayloadHash = plain(`{"kind":1,"created_at":1}`), sha256Hex(`{"kind":1,"created_at":1}`)
		},
	} {
		o := opening{order, order.Proofs[0], plain(genuine)}
		change(&o)
		if opened, err := o.order.OpenProof(o.proof, o.decrypt); err == nil {
			t.Errorf("%s: %+v", name, opened)
		}
	}
	_, err := order.OpenProof(order.Proofs[0], func(string, string, string) (string, error) { return "", refused })
	if !errors.Is(err, refused) {
		t.Errorf("the signer's refusal is lost: %v", err)
	}
}

func TestReusableAuthorization(t *testing.T) {
	t.Parallel()
	vectors := readTradeVectors(t)
	offer := readOrder(t, eventOf(t, vectors.NegotiateOrder))
	accepted := readOrder(t, eventOf(t, vectors.SellerAcceptOrder))
	spoilt := offer
	spoilt.Event = &nostr.Event{ID: "spoilt", PubKey: author}
	decrypt := decryptWith(vectors.Parties.TradeKey.PrivateKey)
	orders := []market.Order{accepted, spoilt, offer, offer}
	if text, ok := market.ReusableAuthorization(orders, vectors.buyerTerms(), decrypt); !ok || text != vectors.TradeKeyAuthorization.Plaintext {
		t.Errorf("%v %q", ok, text)
	}
	other := vectors.buyerTerms()
	other.Identity = author
	if text, ok := market.ReusableAuthorization(orders, other, decrypt); ok {
		t.Errorf("for another identity: %q", text)
	}
	if _, ok := market.ReusableAuthorization([]market.Order{accepted}, vectors.buyerTerms(), decrypt); ok {
		t.Error("an order without proofs holds one")
	}
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
