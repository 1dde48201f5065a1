package market

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
)

func TestProfileSummary(t *testing.T) {
	t.Parallel()
	pubkey := strings.Repeat("4f", 32)
	tests := []struct {
		name    string
		pubkey  string
		profile *Profile
		want    string
	}{
		{"nobody", pubkey, nil, `{"pubkey":"` + pubkey + `","name":"4f4f4f4f..."}`},
		{"a short pubkey", "4f4f4f4f4f4f", nil, `{"pubkey":"4f4f4f4f4f4f","name":"4f4f4f4f4f4f"}`},
		{"everything", pubkey, &Profile{Name: "lake", DisplayName: "Lakeside Host", Picture: "https://a.example/p.png", NIP05: "lake@a.example"},
			`{"pubkey":"` + pubkey + `","name":"Lakeside Host","profileName":"lake","displayName":"Lakeside Host","picture":"https://a.example/p.png","nip05":"lake@a.example"}`},
		{"a name alone", pubkey, &Profile{Name: "lake"}, `{"pubkey":"` + pubkey + `","name":"lake","profileName":"lake"}`},
		{"blanks", pubkey, &Profile{Name: "lake", DisplayName: " ", Picture: "\t", NIP05: ""}, `{"pubkey":"` + pubkey + `","name":"lake","profileName":"lake"}`},
		{"nothing but blanks", pubkey, &Profile{DisplayName: "\n"}, `{"pubkey":"` + pubkey + `","name":"4f4f4f4f..."}`},
	}
	for _, test := range tests {
		got, err := json.Marshal(NewProfileSummary(test.pubkey, test.profile))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v, want %s", test.name, got, err, test.want)
		}
	}
}

func TestOrderLookup(t *testing.T) {
	t.Parallel()
	order := func(author string, at nostr.Timestamp, stage Stage) Order {
		content := OrderContent{Stage: stage, Quantity: 1}
		decoded, err := DecodeOrder(draft(author, KindOrder, at, content.Encode(), nostr.Tags{{"a", "30402:" + strings.Repeat("4f", 32) + ":cabin"}, {"d", "trade"}}))
		if err != nil {
			t.Fatal(err)
		}
		return decoded
	}
	none := NewOrderLookup("trade", nil, nil)
	if got, want := encode(t, none), `{"tradeId":"trade","found":false,"committed":false,"count":0,"orders":[]}`; got != want {
		t.Errorf("nothing is %s, want %s", got, want)
	}
	// The newest commit counts, whatever the order they came in.
	orders := []Order{order("guest", 30, StageCommit), order("other", 10, StageCommit), order("host", 40, StageNegotiate), order("third", 20, StageCommit)}
	lookup := NewOrderLookup("trade", orders, &Listing{Event: &nostr.Event{}})
	var authors []string
	for _, event := range lookup.Orders {
		authors = append(authors, event.PubKey)
	}
	if diff := cmp.Diff([]string{"other", "third", "guest", "host"}, authors); diff != "" || lookup.CommittedOrder.PubKey != "guest" || lookup.Count != 4 {
		t.Errorf("%d orders %s, committed by %s", lookup.Count, diff, lookup.CommittedOrder.PubKey)
	}
	if !lookup.Found || !lookup.Committed || lookup.Listing == nil || len(lookup.Group.Orders) != 4 {
		t.Errorf("the look-up is %s", encode(t, lookup))
	}
	ended := NewOrderLookup("trade", []Order{order("guest", 30, StageCancel)}, nil)
	if !ended.Found || ended.Committed || ended.CommittedOrder != nil || ended.Group.Stage != StageCancel {
		t.Errorf("after the guest's cancellation it is %s", encode(t, ended))
	}
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
