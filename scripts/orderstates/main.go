// Command orderstates draws docs/order-states.md from the table of transitions
// in package market. It runs in that package's folder (go generate ./...).
package main

import (
	"fmt"
	"os"
	"strings"

	"hostr-daemon/internal/market"
)

const page = "../../docs/order-states.md"

func main() {
	if err := os.WriteFile(page, []byte(render(market.TransitionRules())), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "orderstates:", err)
		os.Exit(1)
	}
}

// render returns the page in Markdown, with a Mermaid diagram.
func render(rules []market.TransitionRule) string {
	var text strings.Builder
	text.WriteString(head)
	begins := map[market.Stage]bool{}
	for _, rule := range rules {
		if !begins[rule.From] {
			fmt.Fprintf(&text, "    [*] --> %s\n", rule.From)
		}
		begins[rule.From] = true
	}
	for _, rule := range rules {
		fmt.Fprintf(&text, "    %s --> %s: %s\n", rule.From, rule.To, rule.Type)
	}
	text.WriteString("    cancel --> [*]\n```\n\n| From | To | Type | By an escrow |\n| --- | --- | --- | --- |\n")
	for _, rule := range rules {
		escrow := "yes"
		if rule.NotEscrow {
			escrow = "no"
		}
		fmt.Fprintf(&text, "| `%s` | `%s` | `%s` | %s |\n", rule.From, rule.To, rule.Type, escrow)
	}
	text.WriteString(foot)
	return text.String()
}

const head = `<!-- Made by scripts/orderstates (go generate ./...). Do not edit. -->

# The states of an order

Guest, host and escrow each publish their own order of a trade and keep a log of what they changed, one
chain of transitions each (kind 1326). A chain may begin with any of these steps, and no other step is
allowed:

` + "```mermaid\nstateDiagram-v2\n"

const foot = `
Offers and cancellations inside a negotiation are private and leave no transition. An escrow that has
committed cannot cancel: from then on its contract settles the payment. One cancelled order cancels the
whole trade for everybody.
`
