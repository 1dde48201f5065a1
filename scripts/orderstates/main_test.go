package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/market"
)

func TestPageIsUpToDate(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/order-states.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(render(market.TransitionRules()), string(page)); diff != "" {
		t.Errorf("docs/order-states.md is not what the table gives, run go generate ./...: %s", diff)
	}
}
