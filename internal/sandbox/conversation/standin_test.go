package conversation

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr/nip19"
	"go.uber.org/goleak"

	"hostr-daemon/internal/sandbox"
)

// The stand-in is this test binary run as a child. It answers the conversation
// out of a file, not from the relay: it is here to try the conversation, which
// must accept right answers and name each wrong one. These variables tell it
// what to be.
const (
	standInFlaw = "SANDBOX_STANDIN_FLAW"
	standInFile = "SANDBOX_STANDIN_FILE"
)

func TestMain(m *testing.M) {
	if flaw := os.Getenv(standInFlaw); flaw != "" {
		os.Exit(newStandIn(flaw).run())
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}

// knowledge is what the file holds.
type knowledge struct {
	Relay    string
	Escrow   string
	Listings []sandbox.Listing
	People   []sandbox.Person
}

func newKnowledge(market *sandbox.Market) knowledge {
	return knowledge{
		Relay: market.RelayURL, Escrow: market.Escrow.PublicKey, Listings: market.Listings,
		People: slices.Concat(market.Hosts, market.Guests),
	}
}

type standIn struct {
	flaw  string
	known knowledge
	mu    sync.Mutex // of stdout
	held  sync.Map   // id of a search that waits for the relay -> its request
}

func newStandIn(flaw string) *standIn {
	s := &standIn{flaw: flaw}
	text, err := os.ReadFile(os.Getenv(standInFile))
	if err == nil {
		err = json.Unmarshal(text, &s.known)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	return s
}

// incoming is a request with raw params.
type incoming struct {
	ID      json.RawMessage
	Method  string
	TraceID string
	Params  struct {
		Action, Pubkey, RequestID string
		Input                     map[string]any
	}
}

func (s *standIn) run() int {
	fmt.Fprintln(os.Stderr, `{"event":"hello from the stand-in"}`)
	if s.flaw == "silent" {
		select {}
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var request incoming
		if json.Unmarshal(lines.Bytes(), &request) != nil {
			s.write(map[string]any{"id": nil, "error": issue("unexpected_error", "")})
			continue
		}
		if s.flaw == "dies" && request.Method == "visibleActions" {
			return 3
		}
		s.answer(request)
	}
	if s.flaw == "stays" {
		select {}
	}
	if s.flaw == "exit code" {
		return 3
	}
	return 0
}

func (s *standIn) answer(request incoming) {
	switch request.Method {
	case "describe":
		s.result(request, map[string]any{"version": 1, "actions": catalog()})
	case "visibleActions":
		escrow := request.Params.Pubkey == s.known.Escrow
		visible := catalog()[:actionCount-escrowActionCount]
		if escrow {
			visible = catalog()
		}
		ids := make([]string, len(visible))
		for i, action := range visible {
			ids[i] = action.ID
		}
		s.result(request, map[string]any{"version": 1, "isEscrow": escrow, "escrowPubkeys": []string{s.known.Escrow}, "visibleActionIds": ids})
	case "callAction":
		s.act(request)
	case "cancel":
		held, found := s.held.LoadAndDelete(request.Params.RequestID)
		s.result(request, map[string]any{"cancelled": found, "requestId": request.Params.RequestID})
		if found {
			s.fail(held.(incoming), "request_cancelled")
		}
	default:
		s.fail(request, "unknown_method")
	}
}

func (s *standIn) act(request incoming) {
	input := request.Params.Input
	location, _ := input["location"].(string)
	switch {
	case request.Params.Action == "hostr.session.status":
		s.succeed(request, map[string]any{"tokenPubkey": "", "sessionPubkey": nil, "activePubkey": nil, "authenticated": false, "signerOnline": false})
	case request.Params.Action == "hostr.profile.lookup":
		s.lookup(request, input["npub"].(string))
	case request.Params.Action != "hostr.listings.search":
		s.refuse(request, issue("auth_required", ""))
	case input["type"] == "cabin":
		s.refuse(request, issue("invalid_listing_type", "type"))
	case location == "Nowhereville":
		s.refuse(request, issue("unexpected_error", ""))
	case input["type"] == "villa":
		s.hold(request)
	default:
		if _, ok := input["limit"].(string); ok {
			s.refuse(request, issue("invalid_input", "limit"))
			return
		}
		s.search(request, location, input)
	}
}

// hold asks the relay something and waits to be cancelled.
func (s *standIn) hold(request incoming) {
	if err := s.consult(""); err != nil {
		s.refuse(request, issue("unexpected_error", ""))
		return
	}
	var id string
	_ = json.Unmarshal(request.ID, &id)
	s.held.Store(id, request)
}

// consult asks the relay for listings and reads until a frame begins with end.
func (s *standIn) consult(end string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection, _, err := websocket.Dial(ctx, s.known.Relay, nil)
	if err != nil {
		return err
	}
	defer connection.CloseNow()
	if err := connection.Write(ctx, websocket.MessageText, []byte(`["REQ","x",{"kinds":[30402]}]`)); err != nil {
		return err
	}
	for {
		_, text, err := connection.Read(ctx)
		if err != nil || strings.HasPrefix(string(text), end) {
			return err
		}
	}
}

func (s *standIn) search(request incoming, location string, input map[string]any) {
	if location == "Lisbon" && s.flaw != "lazy" {
		if err := s.consult(`["EOSE","x"`); err != nil {
			s.refuse(request, issue("unexpected_error", ""))
			return
		}
	}
	limit := 10
	if given, ok := input["limit"].(float64); ok {
		limit = int(given)
	}
	guests, _ := input["guests"].(float64)
	query, _ := input["query"].(string)
	var features []string
	for _, feature := range asList(input["features"]) {
		features = append(features, feature.(string))
	}
	summaries := []map[string]any{}
	for _, listing := range s.known.Listings {
		fits := (location == "" || slices.ContainsFunc(listing.Within, func(name string) bool {
			return strings.EqualFold(strings.ReplaceAll(name, "ú", "u"), location)
		})) && withWords(query)(listing) && withFeatures(int(guests), features...)(listing) &&
			(input["type"] == nil || input["type"] == listing.Type) && (input["rentOrBuy"] == nil || input["rentOrBuy"] == listing.RentOrBuy())
		if fits && len(summaries) < limit {
			summaries = append(summaries, s.summary(listing))
		}
	}
	switch {
	case s.flaw == "order" && len(summaries) > 1:
		summaries[0], summaries[1] = summaries[1], summaries[0]
	case s.flaw == "missing" && len(summaries) > 1:
		summaries = summaries[1:]
	case s.flaw == "twice" && len(summaries) > 1:
		summaries = append(summaries, summaries[0])
	}
	count := len(summaries)
	if s.flaw == "count" {
		count++
	}
	s.succeed(request, map[string]any{"count": count, "listings": summaries})
}

func (s *standIn) summary(l sandbox.Listing) map[string]any {
	specifications := map[string]any{"max_guests": l.Guests, "beds": l.Beds, "sauna": false}
	for _, feature := range l.Features {
		specifications[feature] = true
	}
	prices := make([]map[string]any, len(l.Prices))
	for i, price := range l.Prices {
		prices[i] = map[string]any{"amount": map[string]any{
			"value": price.Amount(), "smallestUnitValue": strconv.FormatInt(price.Units, 10), "denomination": price.Denomination,
		}}
		if frequency := map[string]string{"day": "daily", "week": "weekly", "month": "monthly"}[price.Period]; frequency != "" {
			prices[i]["frequency"] = frequency
		}
	}
	if s.flaw == "price" {
		prices[0]["frequency"] = "yearly"
	}
	return map[string]any{
		"id": l.Event.ID, "anchor": l.Anchor, "dTag": l.DTag, "pubkey": l.Host.PublicKey, "title": l.Title,
		"description": l.Description, "active": l.Active, "type": l.Type, "rentOrBuy": l.RentOrBuy(),
		"images": imagesOf(l), "prices": prices, "specifications": specifications,
	}
}

func (s *standIn) lookup(request incoming, key string) {
	pubkey := strings.ToLower(key)
	if strings.HasPrefix(key, "npub1") {
		_, value, err := nip19.Decode(key)
		if err != nil {
			refusal := issue("invalid_npub", "")
			refusal["details"] = map[string]string{"npub": key}
			s.refuse(request, refusal)
			return
		}
		pubkey = value.(string)
	}
	for _, person := range s.known.People {
		if person.PublicKey != pubkey {
			continue
		}
		data := map[string]any{"pubkey": pubkey, "npub": person.NPub, "exists": person.Profile != nil}
		if person.Profile != nil {
			var metadata map[string]any
			_ = json.Unmarshal([]byte(person.Profile.Content), &metadata)
			if s.flaw == "profile" {
				metadata["about"] = "somebody else"
			}
			data["event"], data["metadata"] = person.Profile, metadata
		}
		s.succeed(request, data)
	}
}

func (s *standIn) succeed(request incoming, data any) {
	envelope := map[string]any{"ok": true, "command": request.Params.Action, "environment": Environment, "dryRun": false, "data": data}
	switch s.flaw {
	case "environment":
		envelope["environment"] = "production"
	case "warning":
		envelope["warnings"] = []any{issue("partial_result", "")}
	}
	s.result(request, envelope)
}

func (s *standIn) refuse(request incoming, refusal map[string]any) {
	if s.flaw == "code" {
		refusal["code"] = "other_code"
	}
	s.result(request, map[string]any{
		"ok": false, "command": request.Params.Action, "environment": Environment, "dryRun": false, "errors": []any{refusal},
	})
}

func (s *standIn) result(request incoming, result any) {
	trace := request.TraceID
	if s.flaw == "trace" {
		trace = "another"
	}
	frame := map[string]any{"id": request.ID, "traceId": trace, "result": result}
	s.write(frame)
	if s.flaw == "answers twice" && request.Method == "describe" {
		s.write(frame)
	}
	if s.flaw == "noise" && request.Method == "describe" {
		fmt.Println("just a remark")
	}
}

func (s *standIn) fail(request incoming, code string) {
	s.write(map[string]any{"id": request.ID, "traceId": request.TraceID, "error": issue(code, "")})
}

func (s *standIn) write(frame any) {
	text, _ := json.Marshal(frame)
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Printf("%s\n", text)
}

func issue(code, path string) map[string]any {
	return map[string]any{"code": code, "message": cmp.Or(path, code) + " is not right", "path": path, "retryable": false}
}

func catalog() []ActionSpec {
	actions := []ActionSpec{{ID: "hostr.session.status"}, {ID: "hostr.listings.search"}, {ID: "hostr.profile.lookup"}}
	for len(actions) < actionCount {
		action := ActionSpec{ID: fmt.Sprint("hostr.action.", len(actions))}
		if len(actions) >= actionCount-escrowActionCount {
			action.RequiredRole = "escrow"
		}
		actions = append(actions, action)
	}
	return actions
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}
