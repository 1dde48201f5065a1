package market_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
)

func proofTag(role, participant, payload string) nostr.Tag {
	return nostr.Tag{"participant_proof", role, participant, host, "nip44", "hash", payload}
}

// opens gives the payload as identity, unless it is "closed".
func opens(_ market.Order, proof market.ParticipantProof) (string, bool) {
	return proof.Payload, proof.Payload != "closed"
}

func TestParticipantsOfVectors(t *testing.T) {
	t.Parallel()
	vectors := readGroupVectors(t)
	group := groupOf(t, vectors.orders(t, "commitOrder", "escrowConfirmOrder")...)
	buyer := vectors.Parties.Buyer.Pubkey
	participants := group.Participants(func(market.Order, market.ParticipantProof) (string, bool) { return buyer, true })
	if participants.ThreadID() != vectors.GroupID[2].SHA256 || participants.ResolvedGroupID != vectors.GroupID[3].SHA256 ||
		participants.RawGroupID != vectors.GroupID[1].SHA256 {
		t.Errorf("%+v", participants.Result())
	}
	want := market.GroupRolesResult{Seller: group.SellerPubkey(), Buyer: buyer, Escrow: group.EscrowPubkey()}
	if got := participants.Result(); got.Roles != want || !got.HasResolvedParticipants || slices.Contains(got.ResolvedParticipantSet, group.BuyerPubkey()) {
		t.Errorf("%+v", got)
	}
}

func TestParticipants(t *testing.T) {
	t.Parallel()
	type pubkeys struct{ Buyer, Proven, Escrow string }
	for name, test := range map[string]struct {
		orders []orderTerms
		want   pubkeys
	}{
		"without proof": {
			[]orderTerms{{author: trader, tags: allParties()}},
			pubkeys{trader, trader, escrow},
		},
		"opened": {
			[]orderTerms{{author: trader, tags: append(allParties(), proofTag("buyer", trader, guest))}},
			pubkeys{guest, guest, escrow},
		},
		"not opened": {
			[]orderTerms{{author: trader, tags: append(allParties(), proofTag("buyer", trader, "closed"))}},
			pubkeys{trader, "", escrow},
		},
		"the first that opens": {
			[]orderTerms{{author: trader, tags: append(allParties(), proofTag("buyer", trader, "closed"),
				proofTag("buyer", trader, guest), proofTag("buyer", trader, stranger))}},
			pubkeys{guest, guest, escrow},
		},
		"only the marker": {
			[]orderTerms{{author: host, tags: allParties()}},
			pubkeys{trader, trader, escrow},
		},
		"the host speaks for the guest": {
			[]orderTerms{{author: host, tags: append(allParties(), proofTag("buyer", trader, stranger))},
				{author: trader, tags: append(allParties(), proofTag("buyer", trader, guest))}},
			pubkeys{guest, guest, escrow},
		},
		"the host speaks for himself": {
			[]orderTerms{{author: host, tags: append(allParties(), proofTag("seller", host, stranger))}},
			pubkeys{trader, trader, escrow},
		},
		"the guest speaks for the escrow": {
			[]orderTerms{{author: trader, tags: append(allParties(), proofTag("escrow", escrow, stranger))}},
			pubkeys{trader, trader, escrow},
		},
	} {
		var orders []market.Order
		for _, terms := range test.orders {
			terms.stage = market.StageCommit
			orders = append(orders, terms.order(t))
		}
		participants := groupOf(t, orders...).Participants(opens)
		got := pubkeys{participants.Pubkey(market.RoleBuyer), participants.ProvenPubkey(market.RoleBuyer), participants.Pubkey(market.RoleEscrow)}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if participants.Pubkey(market.RoleSeller) != host || participants.HasResolved() != (got.Buyer == guest) {
			t.Errorf("%s: %+v", name, participants.Result())
		}
		if diff := cmp.Diff(sorted(host, got.Buyer), participants.WithoutEscrow()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func sorted(texts ...string) []string { return slices.Sorted(slices.Values(texts)) }

func TestParticipantsResultKeys(t *testing.T) {
	t.Parallel()
	group := groupOf(t, orderTerms{author: host, stage: market.StageCommit, tags: parties(host)}.order(t))
	id := group.ID()
	want := `{"rawGroupId":"` + id + `","resolvedGroupId":"` + id + `","rawParticipantSet":["` + host +
		`"],"resolvedParticipantSet":["` + host + `"],"hasResolvedParticipants":false,"roles":{"seller":"` + host + `"}}`
	if got := encode(t, group.Participants(opens).Result()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
