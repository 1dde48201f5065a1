package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tidwall/gjson"

	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/input"
	"hostr-daemon/internal/request"
)

// Result prints the outcome of an action.
func Result(out io.Writer, outcome request.Outcome) error {
	page := &strings.Builder{}
	if err := data(page, outcome.Data, len(outcome.Warnings) > 0); err != nil {
		return err
	}
	if len(outcome.Warnings) > 0 {
		page.WriteByte('\n')
	}
	if err := Print(out, page.String()); err != nil {
		return err
	}
	return Warnings(out, outcome.Warnings)
}

// Warnings prints what makes a result less than it could be.
func Warnings(out io.Writer, warnings []*fault.Error) error {
	page := &strings.Builder{}
	for _, warning := range warnings {
		fmt.Fprintf(page, "%s\n", wrap("Note: "+warning.Message, ""))
	}
	return Print(out, page.String())
}

// Failure prints a coded error with what to do about it.
func Failure(out io.Writer, err *fault.Error) error {
	page := &strings.Builder{}
	fmt.Fprintf(page, "%s\n", wrap(string(err.Code)+": "+err.Message, ""))
	if details, ok := err.Details.(input.Details); ok && len(details.Problems) > 1 {
		for _, problem := range details.Problems[1:] {
			fmt.Fprintf(page, "%s\n", wrap("also: "+problem.Message, "  "))
		}
	}
	if err.Path != "" {
		fmt.Fprintf(page, "%s\n", wrap("input: "+err.Path, "  "))
	}
	if err.Hint != "" {
		fmt.Fprintf(page, "%s\n", wrap("hint: "+err.Hint, "  "))
	}
	if err.Retryable {
		page.WriteString("  The same call may work later.\n")
	}
	return Print(out, page.String())
}

// data prints a result; incomplete tells that what is missing may exist all the same.
func data(page *strings.Builder, data any, incomplete bool) error {
	if tradeData(page, data, incomplete) {
		return nil
	}
	switch data := data.(type) {
	case actions.ListingsResult:
		listings(page, data, incomplete)
		return nil
	case actions.ListingCreateResult:
		created(page, data)
		return nil
	case actions.ListingEditResult:
		edited(page, data)
		return nil
	case actions.ListingsAvailabilityResult:
		availability(page, data)
		return nil
	case actions.ListingsReviewsResult:
		reviews(page, data)
		return nil
	case actions.ListingsOrderGroupsResult:
		orderGroups(page, data)
		return nil
	case actions.ProfileLookupResult:
		return profile(page, data, incomplete)
	case actions.SessionStatus:
		sessionStatus(page, data)
		return nil
	case actions.SessionConnectResult:
		return sessionConnect(page, data)
	case nil:
		page.WriteString("Done.\n")
		return nil
	}
	text, err := indented(data)
	page.WriteString(text)
	return err
}

// tradeData prints a result about a trade or a conversation, and tells whether it is one.
func tradeData(page *strings.Builder, data any, incomplete bool) bool {
	switch data := data.(type) {
	case actions.FirstOfferResult:
		firstOffer(page, data)
	case actions.CounterOfferResult:
		counterOffer(page, data)
	case actions.MissingResult:
		impossible(page, data.Message, data.TradeID)
	case actions.OrderCancelResult:
		cancelled(page, data)
	case actions.OrderReviewResult:
		reviewed(page, data)
	case actions.UnreviewableResult:
		impossible(page, data.Message, data.TradeID)
	case actions.OrderListResult:
		trades(page, data, incomplete)
	case actions.OrderLookupResult:
		lookedUp(page, data)
	case actions.UpdatesResult:
		updates(page, data)
	case actions.ThreadViewResult:
		viewed(page, data)
	case actions.ThreadMessageResult:
		messageSent(page, data)
	case actions.EscrowInvolveResult:
		escrowInvolved(page, data)
	default:
		return false
	}
	return true
}

// profile prints what a person says of themselves, names and about first.
func profile(page *strings.Builder, result actions.ProfileLookupResult, incomplete bool) error {
	if !result.Exists && incomplete {
		fmt.Fprintf(page, "No profile could be read for %s.\nWhat is wrong: hostr-daemon doctor\n", result.NPub)
		return nil
	}
	if !result.Exists || result.Metadata == nil {
		fmt.Fprintf(page, "No profile found for %s.\n", result.NPub)
		return nil
	}
	metadata, err := json.Marshal(result.Metadata)
	if err != nil {
		return fmt.Errorf("writing the profile of %s: %w", result.NPub, err)
	}
	fields := gjson.ParseBytes(metadata)
	for _, name := range []string{fields.Get("display_name").Str, fields.Get("name").Str} {
		if name = excerpt(name); name != "" {
			fmt.Fprintf(page, "%s\n", name)
		}
	}
	fmt.Fprintf(page, "%s\n", result.NPub)
	if about := strings.TrimSpace(fields.Get("about").Str); about != "" {
		fmt.Fprintf(page, "\n%s\n", wrap(about, ""))
	}
	otherFields(page, fields)
	return nil
}

// shownElsewhere are the fields that are not part of the list.
var shownElsewhere = map[string]bool{
	"name": true, "display_name": true, "about": true, // above it
	"pubKey": true, "content": true, "updatedAt": true, "tags": true, // for programs
}

func otherFields(page *strings.Builder, fields gjson.Result) {
	table := tabwriter.NewWriter(page, 0, 0, 2, ' ', 0)
	first := true
	fields.ForEach(func(key, value gjson.Result) bool {
		text := excerpt(value.Str)
		if shownElsewhere[key.Str] || value.Type != gjson.String || text == "" {
			return true
		}
		if first {
			page.WriteByte('\n')
			first = false
		}
		fmt.Fprintf(table, "%s\t%s\n", shortened(key.Str), text)
		return true
	})
	_ = table.Flush() // a strings.Builder takes everything
}

func sessionStatus(page *strings.Builder, status actions.SessionStatus) {
	switch {
	case !status.Authenticated || status.ActivePubkey == nil:
		page.WriteString("Nobody is signed in. Searching listings and looking up profiles needs no account.\n")
	case status.SignerOnline:
		fmt.Fprintf(page, "Signed in as %s.\n", *status.ActivePubkey)
	default:
		fmt.Fprintf(page, "Signed in as %s, but the signer cannot be reached.\n", *status.ActivePubkey)
	}
	if status.Storage != nil {
		fmt.Fprintf(page, "Secrets are kept under %s.\n", oneLine(status.Storage.Scope))
	}
}
