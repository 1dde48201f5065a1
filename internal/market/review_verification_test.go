package market_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

// guestAuthorization is the guest's signature over the trade key, its hash and the
// tag in which an order carries both.
func guestAuthorization(key string) (text string, tag nostr.Tag) {
	terms := market.TradeKeyTerms{
		Identity: publicKey(key), Participant: trader, Role: market.RoleBuyer, ListingAnchor: listingAnchor(), TradeID: testTradeID,
	}
	text = market.EncodeEmbeddedEvent(signed(key, market.DraftTradeKeyAuthorization(terms, 1000)))
	hash := sha256.Sum256([]byte(text))
	return text, nostr.Tag{"participant_proof", "buyer", trader, host, "nip44", hex.EncodeToString(hash[:]), "payload"}
}

func TestReviewVerification(t *testing.T) {
	t.Parallel()
	authorization, proof := guestAuthorization(guestKey)
	forged, _ := guestAuthorization(strangerKey)
	hidden := func(tags nostr.Tags) nostr.Tags { return append(tags, proof) }
	commit := orderTerms{author: trader, stage: market.StageCommit, tags: hidden(allParties()), proof: escrowProof()}
	cancelled := orderTerms{author: trader, stage: market.StageCancel, tags: hidden(allParties()), proof: escrowProof()}
	offer := orderTerms{author: trader, stage: market.StageNegotiate, tags: hidden(parties(host, trader))}
	accept := orderTerms{author: host, stage: market.StageCommit, tags: parties(host, trader)}
	plain := orderTerms{author: guest, stage: market.StageCommit, tags: parties(host, guest, escrow), proof: escrowProof()}
	// A stranger who names everybody, in the hope to share in what they confirm.
	intruder := orderTerms{author: stranger, stage: market.StageCommit, proof: escrowProof(),
		tags: append(parties(host, trader, escrow), nostr.Tag{"p", stranger, "", "buyer"})}
	intruder.proof.Escrow = nil
	spoiler := orderTerms{author: stranger, stage: market.StageCancel, tags: allParties()}
	tradeAnchor, listing := "32122:"+trader+":"+testTradeID, pointer(listingOf(t, events().listing))
	ofGuest := &market.ReviewProof{Role: market.RoleBuyer, ParticipantPubkey: trader, Authorization: authorization}

	for name, test := range map[string]struct {
		orders   []orderTerms
		reviewer string
		anchor   string
		proof    *market.ReviewProof
		listing  *market.Listing
		chain    market.ChainVerifier
		want     string // valid or a part of the reason
	}{
		"paid":                         {[]orderTerms{commit}, guest, tradeAnchor, ofGuest, listing, chainYes, "valid"},
		"paid, no anchor":              {[]orderTerms{commit}, guest, "", ofGuest, listing, chainYes, "valid"},
		"cancelled afterwards":         {[]orderTerms{cancelled}, guest, tradeAnchor, ofGuest, listing, chainYes, "valid"},
		"accepted by the host":         {[]orderTerms{offer, accept}, guest, tradeAnchor, ofGuest, listing, nil, "valid"},
		"paid and accepted":            {[]orderTerms{commit, accept}, guest, tradeAnchor, ofGuest, listing, chainNo, "valid"},
		"by identity":                  {[]orderTerms{plain}, guest, "", nil, listing, chainYes, "valid"},
		"no orders":                    {nil, guest, "", ofGuest, listing, nil, "no order"},
		"another order":                {[]orderTerms{commit}, guest, "32122:" + host + ":x", ofGuest, listing, chainYes, "no order"},
		"no listing":                   {[]orderTerms{commit}, guest, "", ofGuest, nil, chainYes, "listing"},
		"without the proof":            {[]orderTerms{commit}, guest, "", nil, listing, chainYes, "not proven"},
		"a stranger with the proof":    {[]orderTerms{commit}, stranger, "", ofGuest, listing, chainYes, "not proven"},
		"a stranger with a like proof": {[]orderTerms{commit}, stranger, "", &market.ReviewProof{Role: market.RoleBuyer, ParticipantPubkey: trader, Authorization: forged}, listing, chainYes, "not proven"},
		"an unreadable proof":          {[]orderTerms{commit}, guest, "", &market.ReviewProof{Role: market.RoleBuyer, ParticipantPubkey: trader, Authorization: "{"}, listing, chainYes, "not proven"},
		"never paid":                   {[]orderTerms{commit}, guest, tradeAnchor, ofGuest, listing, chainNo, "too little"},
		"never confirmed":              {[]orderTerms{commit}, guest, tradeAnchor, ofGuest, listing, nil, "never confirmed"},
		"a stranger borrows the trade": {[]orderTerms{commit, accept, intruder}, stranger, "", nil, listing, chainYes, "no escrow"},
		"a stranger does not spoil it": {[]orderTerms{commit, spoiler}, guest, tradeAnchor, ofGuest, listing, chainYes, "valid"},
		"at his own listing":           {[]orderTerms{{author: stranger, stage: market.StageCommit, anchor: "30402:" + stranger + ":x", tags: parties(stranger)}}, stranger, "", nil, listing, nil, "no order"},
	} {
		var orders []market.Order
		for _, terms := range test.orders {
			orders = append(orders, terms.order(t))
		}
		review := market.Review{TradeID: testTradeID, ListingAnchor: listingAnchor(), OrderAnchor: test.anchor, Stars: 4, Proof: test.proof}
		review.Event = review.Draft(test.reviewer, 5000)
		got := review.Verify(orders, test.listing, func(group market.OrderGroup) market.GroupVerification {
			return group.Verify(test.listing, false, test.chain)
		})
		outcome := got.Reason
		if got.Valid {
			outcome = "valid"
		}
		if !strings.Contains(outcome, test.want) || got.Valid != (got.Reason == "") {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}
