package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hostr-daemon/internal/sandbox"
)

func mistakes(_ *sandbox.Market) []step {
	refuse := func(action string, input map[string]any, code, path string) func(context.Context, *talk) {
		return func(ctx context.Context, t *talk) {
			if envelope, ok := t.action(ctx, action, input); ok {
				t.refused(envelope, code, path)
			}
		}
	}
	return []step{
		{
			"Ask for something that does not exist",
			"A refusal is an ordinary answer: ok is false, and the error has a code for programs, a sentence for people and the " +
				"place in the input.",
			refuse("hostr.listings.search", map[string]any{"type": "cabin"}, "invalid_listing_type", "type"),
		},
		{
			"Ask with a number that is none",
			"Input that cannot be read is refused instead of guessed at.",
			refuse("hostr.listings.search", map[string]any{"limit": "as many as you have"}, "invalid_input", "limit"),
		},
		{
			"Look for a place nobody knows",
			"The geocoder knows no such place, and the daemon says so.",
			refuse("hostr.listings.search", map[string]any{"location": "Nowhereville"}, "unexpected_error", ""),
		},
		{
			"Look up a key that is none",
			"The details of the error repeat what was given.",
			invalidNPub,
		},
		{
			"Do what only a signed-in account may",
			"Everything beyond looking around belongs to an account. Unknown actions get the same answer, so nothing is given away.",
			func(ctx context.Context, t *talk) {
				refuse("hostr.trips.list", map[string]any{}, "auth_required", "")(ctx, t)
				refuse("hostr.no.such.action", map[string]any{}, "auth_required", "")(ctx, t)
			},
		},
		{
			"Write nonsense",
			"A method that does not exist and a line that is no JSON: each is answered, and the daemon goes on.",
			nonsense,
		},
	}
}

func troubles(m *sandbox.Market) []step {
	return []step{
		{
			"Change your mind",
			"The relay is told not to finish its answer, so that the search hangs. The program cancels it by its id; cancelling never " +
				"waits in line, and the search ends at once.",
			func(ctx context.Context, t *talk) { cancelSearch(ctx, t, m) },
		},
		{
			"Meet a relay that lies",
			"Now the relay mixes in broken frames, events nobody asked for, duplicates, and copies with forged content and signatures " +
				"ahead of the real ones. The daemon returns what is genuine.",
			func(ctx context.Context, t *talk) { lyingRelay(ctx, t, m) },
		},
		{
			"Ask many things at once",
			"Requests run side by side, up to sixteen at a time, and each gets its own answer. Six searches are sent before the " +
				"first answer is read.",
			func(ctx context.Context, t *talk) { manyAtOnce(ctx, t, m) },
		},
	}
}

func invalidNPub(ctx context.Context, t *talk) {
	const given = "npub1nonsense"
	envelope, ok := t.action(ctx, "hostr.profile.lookup", map[string]any{"npub": given})
	if !ok {
		return
	}
	t.refused(envelope, "invalid_npub", "")
	if len(envelope.Errors) == 0 {
		return
	}
	var details struct {
		NPub string `json:"npub"`
	}
	err := json.Unmarshal(envelope.Errors[0].Details, &details)
	t.check(err == nil && details.NPub == given, "the details hold what was given", string(envelope.Errors[0].Details))
}

func nonsense(ctx context.Context, t *talk) {
	if frame, ok := t.call(ctx, "makeCoffee", nil); ok {
		code := "no error"
		if frame.Error != nil {
			code = frame.Error.Code
		}
		t.check(code == "unknown_method", "the method is refused with unknown_method", code)
	}
	const line = "this is no JSON"
	t.child.Expect("null")
	t.showRequest(line)
	if err := t.child.SendLine(line); err != nil {
		t.stop(err)
		return
	}
	waiting, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	frame, err := t.child.Await(waiting, "null")
	if err != nil {
		t.stop(err)
		return
	}
	t.showAnswer(string(frame.text))
	t.check(frame.Error != nil && frame.Error.Code == "unexpected_error",
		"the line is refused, with the id null since it had none", string(frame.text))
}

func cancelSearch(ctx context.Context, t *talk, m *sandbox.Market) {
	asked := m.Relay.Counters().REQs
	m.Relay.Break(sandbox.Faults{NoEOSE: true})
	defer m.Relay.Heal()
	search, ok := t.send("callAction", ActionParams{Action: "hostr.listings.search", Input: map[string]any{"type": "villa"}})
	if !ok {
		return
	}
	reaching, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if _, err := m.Relay.WaitFor(reaching, func(c sandbox.Counters) bool { return c.REQs > asked }); err != nil {
		t.stop(fmt.Errorf("the search never reached the relay: %w", err))
		return
	}
	var id string
	if err := json.Unmarshal(search.ID, &id); err != nil {
		t.stop(err)
		return
	}
	began := time.Now()
	if frame, ok := t.call(ctx, "cancel", map[string]string{"requestId": id}); ok {
		var cancelled Cancelled
		if t.read(frame, &cancelled) {
			t.check(cancelled.Cancelled && cancelled.RequestID == id, "the search was found and cancelled", fmt.Sprintf("%+v", cancelled))
		}
	}
	frame, ok := t.await(ctx, search)
	if !ok {
		return
	}
	took := time.Since(began)
	t.check(frame.Error != nil && frame.Error.Code == "request_cancelled" && took < cancelTimeout,
		"the search itself is answered with request_cancelled, without waiting for the relay",
		fmt.Sprintf("%s after %s", shorten(string(frame.text), 200), spell(took)))
}

// cancelTimeout is far above what cancelling takes and far below the 10 s the
// daemon would wait for the relay.
const cancelTimeout = 5 * time.Second

func lyingRelay(ctx context.Context, t *talk, m *sandbox.Market) {
	want := find(m, 50, inPlace("Lisbon"))
	sent := m.Relay.Counters().SentEvents
	m.Relay.Break(sandbox.Faults{Garbage: true, Foreign: true, Forged: true, Duplicates: 1})
	defer m.Relay.Heal()
	t.search(ctx, map[string]any{"location": "Lisbon", "limit": 50}, "the listings in Lisbon", want)
	sent = m.Relay.Counters().SentEvents - sent
	// Four forgeries and one duplicate for each listing, and some foreign events.
	t.check(sent > 6*len(want), fmt.Sprintf("the relay sent %d events for %d listings", sent, len(want)),
		"the relay was not asked, or its lies did not come")
}

// manyAtOnce writes all requests before it reads an answer.
func manyAtOnce(ctx context.Context, t *talk, m *sandbox.Market) {
	towns := []string{"Porto", "Ericeira", "Suchitoto", "Funchal", "Juayua", "El Tunco"}
	names := []string{"Porto", "Ericeira", "Suchitoto", "Funchal", "Juayúa", "El Tunco"}
	t.quiet = true
	defer func() { t.quiet = false }()
	requests := make([]Request, len(towns))
	for i, town := range towns {
		request, ok := t.send("callAction", ActionParams{
			Action: "hostr.listings.search", Input: map[string]any{"location": town, "limit": 5},
		})
		if !ok {
			return
		}
		requests[i] = request
	}
	for i, request := range requests {
		envelope, ok := t.envelope(ctx, request, "hostr.listings.search")
		if !ok {
			return
		}
		var result SearchResult
		if !t.data(envelope, &result) {
			continue
		}
		want := find(m, 5, inPlace(names[i]))
		if difference := compare(result, want); difference != "" {
			t.bad("not the listings in %s: %s", names[i], difference)
			continue
		}
		t.good("%s: exactly the %d newest listings", names[i], len(want))
	}
}
