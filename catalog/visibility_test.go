package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

const (
	escrowA = "c51b0c80ab4ec70cee8746fa0175ea439152bb8cf2d37ef84d13eaa095112f0c"
	escrowB = "84d4dd964730c6cd1b901b0bb60a60ca4fb085878efd577b7a3ad60872772c5e"
	guest   = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	const upperA = "C51B0C80AB4EC70CEE8746FA0175EA439152BB8CF2D37EF84D13EAA095112F0C"
	loaded := load(t)
	for _, test := range []struct {
		name       string
		pubkey     string
		escrows    []string
		wantPubkey any
		wantEscrow bool
		wantList   []string
		wantCount  int
	}{
		{"nobody", "", []string{escrowA}, nil, false, []string{escrowA}, 29},
		{"blank", " \t ", nil, nil, false, []string{}, 29},
		{"ordinary", guest, []string{escrowA, escrowB}, guest, false, []string{escrowB, escrowA}, 29},
		{"escrow", escrowA, []string{escrowA}, escrowA, true, []string{escrowA}, 43},
		{"escrow in upper case with spaces", "  " + upperA + " ", []string{escrowB, escrowA}, upperA, true, []string{escrowB, escrowA}, 43},
		{"list to be cleaned", escrowA, []string{" " + upperA, "", "  ", escrowB, escrowA, escrowB}, escrowA, true, []string{escrowB, escrowA}, 43},
		{"no escrows, session name", "Ab_-cd", nil, "Ab_-cd", false, []string{}, 29},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			encoded, err := json.Marshal(loaded.Visible(test.pubkey, test.escrows))
			if err != nil {
				t.Fatal(err)
			}
			answer := gjson.ParseBytes(encoded)
			wantKeys := []string{"version", "pubkey", "isEscrow", "escrowPubkeys", "visibleActionIds", "actions"}
			if diff := cmp.Diff(wantKeys, keysOf(answer)); diff != "" {
				t.Errorf("keys: %s", diff)
			}
			if diff := cmp.Diff(test.wantPubkey, answer.Get("pubkey").Value()); diff != "" {
				t.Errorf("pubkey: %s", diff)
			}
			if answer.Get("version").Int() != 1 || answer.Get("isEscrow").Bool() != test.wantEscrow {
				t.Errorf("version %s, isEscrow %s", answer.Get("version").Raw, answer.Get("isEscrow").Raw)
			}
			wantList, _ := json.Marshal(test.wantList)
			if got := answer.Get("escrowPubkeys").Raw; got != string(wantList) {
				t.Errorf("escrowPubkeys is %s, not %s", got, wantList)
			}
			checkVisibleActions(t, answer, test.wantCount)
		})
	}
}

func checkVisibleActions(t *testing.T, answer gjson.Result, wantCount int) {
	t.Helper()
	var ids, described []string
	for _, id := range answer.Get("visibleActionIds").Array() {
		ids = append(ids, id.Str)
	}
	for _, spec := range answer.Get("actions").Array() {
		described = append(described, spec.Get("id").Str)
		if wantCount == 29 && spec.Get("requiredRole").Exists() {
			t.Errorf("%s is visible without its role", spec.Get("id").Str)
		}
	}
	if len(ids) != wantCount {
		t.Errorf("%d actions are visible, not %d", len(ids), wantCount)
	}
	if diff := cmp.Diff(ids, described); diff != "" {
		t.Errorf("visibleActionIds and actions differ: %s", diff)
	}
}
