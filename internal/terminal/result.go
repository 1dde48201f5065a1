package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nbd-wtf/go-nostr/nip19"
	"github.com/tidwall/gjson"

	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/input"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/request"
)

// Call is the command whose outcome is printed.
type Call struct {
	// Action is its id; As is the account as it was named, "" for none.
	Action, As string
	// Pubkey is the account in hex.
	Pubkey string
	// Accounts are those signed in here, as npub; nil where that is not known.
	Accounts []string
	Now      time.Time
}

// account is what commands that follow name with --as.
func (c Call) account() string { return cmp.Or(oneLine(c.As), "ACCOUNT") }

// resultPage is a page that tells of a call.
type resultPage struct {
	strings.Builder
	call Call
}

// Result prints the outcome of an action.
func Result(out io.Writer, call Call, outcome request.Outcome) error {
	page := &resultPage{call: call}
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
		fmt.Fprintf(page, "%s\n", wrap("hint: "+typed(err), "  "))
	}
	if err.Retryable {
		page.WriteString("  The same call may work later.\n")
	}
	return Print(out, page.String())
}

// typed is a hint as it is typed at a terminal: an object is given as key='{…}'.
func typed(err *fault.Error) string {
	if !strings.HasPrefix(err.Hint, "{") || err.Path == "" || !plainWord.MatchString(err.Path) || strings.Contains(err.Path, ".") {
		return err.Hint
	}
	return err.Path + "=" + shellWord(err.Hint)
}

// data prints a result; incomplete tells that what is missing may exist all the same.
func data(page *resultPage, data any, incomplete bool) error {
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
	case actions.ProfileEditResult:
		return profileEdited(page, data)
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
func tradeData(page *resultPage, data any, incomplete bool) bool {
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
func profile(page *resultPage, result actions.ProfileLookupResult, incomplete bool) error {
	if !result.Exists && incomplete {
		fmt.Fprintf(page, "No profile could be read for %s.\nWhat is wrong: hostr-daemon doctor\n", result.NPub)
		return nil
	}
	if !result.Exists || result.Metadata == nil {
		fmt.Fprintf(page, "No profile found for %s.\n", result.NPub)
		return nil
	}
	return metadata(page, result.NPub, *result.Metadata)
}

// profileEdited prints a profile as it is after an edit, or would be.
func profileEdited(page *resultPage, result actions.ProfileEditResult) error {
	verdict := "Published: this is the profile now."
	if result.DryRun {
		verdict = "This is a preview: nothing was published, and the profile is as it was."
	}
	fmt.Fprintf(page, "%s\n\n", wrap(verdict, ""))
	npub, err := nip19.EncodePublicKey(result.Pubkey)
	if err != nil {
		return fmt.Errorf("writing the account of a profile: %w", err)
	}
	if err := metadata(page, npub, result.Metadata); err != nil {
		return err
	}
	refusals(page, result.RelayResponses)
	if result.DryRun {
		goOn(page, toPublish)
	}
	return nil
}

func metadata(page *resultPage, npub string, shown market.Metadata) error {
	metadata, err := json.Marshal(shown)
	if err != nil {
		return fmt.Errorf("writing the profile of %s: %w", npub, err)
	}
	fields := gjson.ParseBytes(metadata)
	for _, name := range []string{fields.Get("display_name").Str, fields.Get("name").Str} {
		if name = excerpt(name); name != "" {
			fmt.Fprintf(page, "%s\n", name)
		}
	}
	fmt.Fprintf(page, "%s\n", npub)
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

func otherFields(page *resultPage, fields gjson.Result) {
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

func sessionStatus(page *resultPage, status actions.SessionStatus) {
	switch {
	case !status.Authenticated && status.TokenPubkey == "":
		whoIsHere(page)
	case !status.Authenticated || status.ActivePubkey == nil:
		page.WriteString("This account is not signed in here.\n")
		whoIsHere(page)
	case status.SignerOnline:
		fmt.Fprintf(page, "Signed in as %s.\n", *status.ActivePubkey)
	default:
		fmt.Fprintf(page, "Signed in as %s, but the signer cannot be reached.\n", *status.ActivePubkey)
	}
	if status.Storage != nil && status.TokenPubkey != "" {
		fmt.Fprintf(page, "Secrets are kept under %s.\n", oneLine(status.Storage.Scope))
	}
}

// whoIsHere tells which accounts there are to act as.
func whoIsHere(page *resultPage) {
	switch accounts := page.call.Accounts; {
	case accounts == nil:
		page.WriteString("Which accounts are signed in here cannot be listed; name one with --as.\n")
	case len(accounts) == 0:
		fmt.Fprintf(page, "%s\n", wrap("Nobody is signed in here. Searching listings, their free dates, reviews and public orders, and looking up profiles needs no account. To sign in:", ""))
		page.WriteString("  hostr-daemon call hostr.session.connect\n")
	default:
		fmt.Fprintf(page, "Signed in here:\n  %s\nTo act as one of them, name it with --as.\n", strings.Join(accounts, "\n  "))
	}
}

// Unauthorized is a refusal of somebody who is not signed in, with what to do at a
// terminal. That of an account whose signer does not answer stays as it is.
func (c Call) Unauthorized(refusal *fault.Error) *fault.Error {
	npub, err := nip19.EncodePublicKey(c.Pubkey)
	if err == nil && slices.Contains(c.Accounts, npub) {
		return refusal
	}
	told := *refusal
	if c.As == "" {
		told.Message = c.Action + " needs an account, and none is named: say with --as which one acts."
	}
	const signIn = "to sign in: hostr-daemon call hostr.session.connect"
	switch {
	case c.Accounts == nil:
		told.Hint = signIn
	case len(c.Accounts) == 0:
		told.Hint = "nobody is signed in here; " + signIn
	default:
		told.Hint = "signed in here: --as " + strings.Join(c.Accounts, " or --as ")
	}
	return &told
}
