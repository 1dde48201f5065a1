package catalog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/catalog/definition"
)

// bridgeDrops are the prefixes of the paragraphs that the bridge leaves out of the
// tool list (spec 30 §5).
var bridgeDrops = []string{
	"MCP driving notes:", "Read-only behavior:", "Write behavior:", "Preview rule:", "Escrow role notes:",
}

// What the bridge leaves of a composed text is the action's own words and the rule
// about dates where there are dates.
func TestDescriptionAfterTheBridgesFilter(t *testing.T) {
	t.Parallel()
	for _, action := range load(t).Actions() {
		want := []string{action.Summary}
		if action.HasDates {
			want = append(want, "Order date rule:")
		}
		if action.Guidance != "" {
			want = append(want, action.Guidance)
		}
		var got []string
		for paragraph := range strings.SplitSeq(action.Description, "\n\n") {
			switch paragraph = strings.TrimSpace(paragraph); {
			case startsWithAny(paragraph, bridgeDrops):
			case strings.HasPrefix(paragraph, "Order date rule:"):
				got = append(got, "Order date rule:")
			default:
				got = append(got, paragraph)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", action.ID, diff)
		}
	}
}

// The paragraphs stand in the order of spec 30 §5.
func TestDescriptionOrder(t *testing.T) {
	t.Parallel()
	for _, action := range load(t).Actions() {
		want := []string{"MCP driving notes:"}
		if action.RequiredRole != "" {
			want = append(want, "Escrow role notes:")
		}
		if action.ReadOnly {
			want = append(want, "Read-only behavior:")
		} else {
			want = append(want, "Write behavior:")
		}
		if action.HasDryRun {
			want = append(want, "Preview rule:")
		}
		if action.HasDates {
			want = append(want, "Order date rule:")
		}
		paragraphs := strings.Split(action.Description, "\n\n")
		var got []string
		for _, paragraph := range paragraphs[1 : 1+len(want)] {
			prefix, _, _ := strings.Cut(paragraph, ":")
			got = append(got, prefix+":")
		}
		if diff := cmp.Diff(want, got); diff != "" || paragraphs[0] != action.Summary {
			t.Errorf("%s: %s", action.ID, diff)
		}
	}
}

// Texts that an agent cannot do without (spec 30 §5).
func TestDescriptionsSayWhatTheyMust(t *testing.T) {
	t.Parallel()
	loaded := load(t)
	for id, phrases := range map[string][]string{
		"hostr.orders.bookAndPay": {
			"temporary pubkey", "identity mismatch", "invoice and QR", "hostr_swaps_watch", "at once", "hostr_trips_list", "hostr_orders_commit",
			"YYYY-MM-DDT00:00:00Z",
		},
		"hostr.trips.list":            {"temporary pubkey", "identity mismatch"},
		"hostr.swaps.watch":           {"temporary pubkey", "identity mismatch"},
		"hostr.session.connect":       {"immediately", "wait true"},
		"hostr.listings.create":       {"hostr_images_upload", "dTag", "URLs"},
		"hostr.listings.availability": {"partial"},
		"hostr.updates": {
			"hostr_session_accounts", "hostr_session_switch", "hostr_session_connect", "hostr_session_logout", "guest, host or escrow",
		},
		"hostr.escrow.service.edit": {"hostr_profile_edit", "dryRun=false"},
	} {
		action, found := loaded.Lookup(id)
		if !found {
			t.Errorf("there is no %s", id)
		}
		for _, phrase := range phrases {
			if !strings.Contains(action.Description, phrase) {
				t.Errorf("the description of %s does not say %q", id, phrase)
			}
		}
	}
}

// enum does not survive the bridge's conversion, so the words stand in the
// descriptions (spec 30 §5).
func TestPropertyTextsNameTheAllowedWords(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, action := range load(t).Actions() {
		schema, err := definition.ParseSchema(action.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		for _, property := range schema.Properties {
			for _, word := range property.Enum {
				checked++
				if !strings.Contains(property.Description, word) {
					t.Errorf("%s: the description of %s does not name %q", action.ID, property.Name, word)
				}
			}
		}
	}
	if checked != 10 {
		t.Errorf("%d words of enums were looked at, not 10", checked)
	}
}

func startsWithAny(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
