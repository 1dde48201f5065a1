package profiles_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/signer"
)

// The account, the time and the event of the vector of spec 20 §10.5.
const (
	vectorKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	vectorID  = "abf94ac1a618919578cc307afb22cb6537b9c7866fe5f3194a964065d9c02d8d"
)

var vectorTime = time.Unix(1_780_000_000, 0)

// A preview of somebody new is the vector, unsigned, and nothing is sent.
func TestPreviewOfANewProfile(t *testing.T) {
	t.Parallel()
	hostr := relayWith(t)
	desk := newHouse(t).desk(accountOf(t, vectorKey), nil, hostr.RelayURL)
	desk.at(vectorTime)
	edited, err := desk.editor.Edit(patient(t), profiles.EditRequest{
		Name: " Casa Azul ", About: "Quiet rooms", LUD16: "casa@example.com", DryRun: true,
	}, desk.account)
	if err != nil {
		t.Fatal(err)
	}
	if edited.Event.ID != vectorID || edited.Event.Sig != "" || edited.Receipts != nil || edited.Warning != nil {
		t.Errorf("%s, receipts %v, warning %v", edited.Event, edited.Receipts, edited.Warning)
	}
	if edited.Profile.Event != edited.Event || edited.Profile.Name != "Casa Azul" || edited.Profile.LUD16 != "casa@example.com" {
		t.Errorf("the profile does not show the event: %+v", edited.Profile)
	}
	if sent := hostr.Relay.Counters(); sent.EVENTs != 0 || sent.AUTHs != 0 {
		t.Errorf("a preview sent something: %+v", sent)
	}
}

func TestPreviewStartsFromTheKnownProfile(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	hostr := relayWith(t)
	house := newHouse(t)
	desk := house.desk(accountOf(t, who.key), nil, hostr.RelayURL)
	event := who.writes(t, 2_000_000_000, `{"about":"known","x":[1]}`)
	event.Tags = nostr.Tags{{"client", "y\xff"}, {}} // relays refuse bytes that are not UTF-8
	known := decoded(t, event)
	house.cache.Put(known)
	edited, err := desk.editor.Edit(patient(t), profiles.EditRequest{Name: "N", DryRun: true}, desk.account)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"about":"known","x":[1],"name":"N","picture":"","nip05":"","lud16":""}`; edited.Event.Content != want {
		t.Errorf("content %s, want %s", edited.Event.Content, want)
	}
	if diff := cmp.Diff(nostr.Tags{{"client", "y\uFFFD"}, {}}, edited.Event.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if edited.Event.CreatedAt != 2_000_000_001 || edited.Event.ID != edited.Event.GetID() {
		t.Errorf("event %s, want it one second later than the known one", edited.Event)
	}
	if asked := profileREQs(hostr, who.pubkey); asked != 0 {
		t.Errorf("the relay was asked %d times for what is known", asked)
	}
	if found := find(t, desk.service, who.pubkey); found.Profile != known {
		t.Error("a preview changed what is known")
	}
}

// A preview that may have missed a profile says so.
func TestPreviewWarns(t *testing.T) {
	t.Parallel()
	hostr := relayWith(t)
	hostr.Relay.Break(refusingREQs)
	desk := newHouse(t).desk(accountOf(t, newPerson(t).key), nil, hostr.RelayURL)
	edited, err := desk.editor.Edit(patient(t), profiles.EditRequest{Name: "N", DryRun: true}, desk.account)
	if err != nil || edited.Warning == nil || edited.Warning.Code != fault.PartialResult {
		t.Errorf("warning %v, %v", edited.Warning, err)
	}
}

// A live edit keeps everything it was not asked to change, and is known at once.
func TestEditKeepsTheRest(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	now := nostr.Now()
	old := nostr.Event{
		CreatedAt: now, Content: `{"display_name":"D","name":"old","lud06":"lnurl1","rank":1.50,"about":"a"}`,
		Tags: nostr.Tags{{"i", "github:x", "proof"}, {}, {"client", "y"}},
	}
	if err := old.Sign(who.key); err != nil {
		t.Fatal(err)
	}
	hostr := relayWith(t, old)
	desk := newHouse(t).desk(accountOf(t, who.key), nil, hostr.RelayURL)
	desk.at(now.Time())
	edited := desk.edit(t, profiles.EditRequest{Name: "new", Picture: "https://example.org/p.png"})

	want := nostr.Event{
		PubKey: who.pubkey, CreatedAt: now + 1, Kind: 0,
		Tags:    nostr.Tags{{"i", "github:x", "proof"}, {}, {"client", "y"}},
		Content: `{"display_name":"D","name":"new","lud06":"lnurl1","rank":1.50,"about":"a","picture":"https://example.org/p.png","nip05":"","lud16":""}`,
	}
	want.ID, want.Sig = want.GetID(), edited.Event.Sig
	if diff := cmp.Diff(want.String(), edited.Event.String()); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	wantReceipts(t, edited.Receipts, map[string]bool{hostr.RelayURL: true})
	stored := stored(t, hostr, who.pubkey)
	if len(stored) != 1 || stored[0].String() != edited.Event.String() {
		t.Errorf("the relay holds %v", stored)
	}
	asked := profileREQs(hostr, who.pubkey)
	wantName(t, find(t, desk.service, who.pubkey), "new")
	if profileREQs(hostr, who.pubkey) != asked {
		t.Error("the edited profile was looked up again")
	}
}

// What an edit starts from is the newest version, wherever it lies.
func TestEditStartsFromTheNewestVersion(t *testing.T) {
	t.Parallel()
	now := nostr.Now()
	who := newPerson(t)
	version := func(age nostr.Timestamp, content string) *nostr.Event {
		event := who.writes(t, now-age, content)
		return &event
	}
	older, newer := version(200, `{"about":"older"}`), version(100, `{"about":"newer"}`)
	for name, test := range map[string]struct {
		hostr, public, write, known *nostr.Event
		want                        string
	}{
		"nowhere":                  {want: ""},
		"Hostr relay":              {hostr: newer, public: older, known: older, want: "newer"},
		"public relay":             {hostr: older, public: newer, want: "newer"},
		"write relay":              {hostr: older, write: newer, want: "newer"},
		"only on the write relay":  {write: older, want: "older"},
		"known":                    {hostr: older, known: newer, want: "newer"},
		"newer ones are no object": {hostr: older, public: version(-1000, "[]"), want: "older"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hostr, public, write := relayHolding(t, test.hostr), relayHolding(t, test.public), relayHolding(t, test.write)
			house := newHouse(t)
			if test.known != nil {
				house.cache.Put(decoded(t, *test.known))
			}
			lists := writeRelays{who.pubkey: {write.RelayURL, "not a URL", hostr.RelayURL}}
			desk := house.desk(accountOf(t, who.key), lists, hostr.RelayURL, public.RelayURL)
			desk.at(now.Time())
			edited := desk.edit(t, profiles.EditRequest{Name: "edited"})
			if edited.Profile.About != test.want || edited.Profile.Name != "edited" {
				t.Errorf("content %s, want about %q", edited.Event.Content, test.want)
			}
			for _, each := range []*nostr.Event{test.hostr, test.public, test.write, test.known} {
				if each != nil && each.CreatedAt >= edited.Event.CreatedAt {
					t.Errorf("the edit of %d does not replace the version of %d", edited.Event.CreatedAt, each.CreatedAt)
				}
			}
			wantReceipts(t, edited.Receipts, map[string]bool{hostr.RelayURL: true, write.RelayURL: true})
		})
	}
}

// Nothing replaces a profile that nobody has seen.
func TestEditRefusesToReplaceTheUnseen(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	event := who.writes(t, nostr.Now()-100, `{"about":"precious"}`)
	hostr, public := relayWith(t, event), relayWith(t)
	hostr.Relay.Break(refusingREQs)
	house := newHouse(t)
	desk := house.desk(accountOf(t, who.key), nil, hostr.RelayURL, public.RelayURL)
	asked := &countingAuthor{Author: desk.account}
	_, err := desk.editor.Edit(patient(t), profiles.EditRequest{Name: "N"}, asked)
	var refused *fault.Error
	if !errors.As(err, &refused) || refused.Code != fault.UnexpectedError || !refused.Retryable {
		t.Fatalf("%v, want a retryable unexpected_error", err)
	}
	if !strings.Contains(refused.Message, hostr.RelayURL) || refused.Details == nil {
		t.Errorf("the message does not name the relay: %s (%v)", refused.Message, refused.Details)
	}
	if asked.signed != 0 || hostr.Relay.Counters().EVENTs+public.Relay.Counters().EVENTs != 0 {
		t.Error("something was signed or sent")
	}

	house.cache.Put(decoded(t, event))
	if edited := desk.edit(t, profiles.EditRequest{Name: "N"}); edited.Profile.About != "precious" {
		t.Errorf("the known version is lost: %s", edited.Event.Content)
	}
}

// Slow public relays get a second chance where no profile was found at all.
func TestNewcomersSlowRelaysAreAskedAgain(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	elsewhere := who.writes(t, nostr.Now()-100, `{"about":"elsewhere"}`)
	hostr := relayWith(t)
	house := newHouse(t)
	client := house.client(accountOf(t, who.key), hostr.RelayURL)
	var mu sync.Mutex
	var timeouts []time.Duration
	relays := scriptedQueries{func(options relay.QueryOptions) relay.Answer {
		if slices.Equal(options.Relays, []string{hostr.RelayURL}) {
			return relay.Answer{Complete: true}
		}
		mu.Lock()
		defer mu.Unlock()
		if timeouts = append(timeouts, options.Timeout); len(timeouts) == 1 {
			return relay.Answer{}
		}
		return relay.Answer{Events: []*nostr.Event{&elsewhere}, Complete: true}
	}}
	service := profiles.New(relays, hostr.RelayURL, []string{hostr.RelayURL, "wss://slow.example.org"}, house.cache)
	t.Cleanup(service.Close)
	editor := profiles.NewEditor(service, client, writeRelays{}, time.Now)
	edited, err := editor.Edit(patient(t), profiles.EditRequest{Name: "N"}, accountOf(t, who.key))
	if err != nil || edited.Profile.About != "elsewhere" {
		t.Errorf("%+v, %v", edited.Profile, err)
	}
	if diff := cmp.Diff([]time.Duration{5 * time.Second, 7 * time.Second}, timeouts); diff != "" {
		t.Errorf("timeouts (-want +got):\n%s", diff)
	}
}

// One relay that takes the event is enough; every relay's answer is told.
func TestEditReportsEveryRelay(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	hostr, write := relayWith(t), relayWith(t)
	write.Relay.Break(sandbox.Faults{RefuseEvents: "blocked: no kind 0 here"})
	desk := newHouse(t).desk(accountOf(t, who.key), writeRelays{who.pubkey: {write.RelayURL}}, hostr.RelayURL)
	edited := desk.edit(t, profiles.EditRequest{Name: "N"})
	wantReceipts(t, edited.Receipts, map[string]bool{hostr.RelayURL: true, write.RelayURL: false})

	hostr.Relay.Break(sandbox.Faults{RefuseEvents: "blocked: read only"})
	failed, err := desk.editor.Edit(patient(t), profiles.EditRequest{Name: "M"}, desk.account)
	if !fault.Is(err, fault.UnexpectedError) || !strings.Contains(err.Error(), "read only") {
		t.Errorf("error %v", err)
	}
	wantReceipts(t, failed.Receipts, map[string]bool{hostr.RelayURL: false, write.RelayURL: false})
	wantName(t, find(t, desk.service, who.pubkey), "N")
}

// Edits made at the same time all count.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	hostr := relayWith(t)
	desk := newHouse(t).desk(accountOf(t, who.key), nil, hostr.RelayURL)
	var editing sync.WaitGroup
	for _, request := range []profiles.EditRequest{{Name: "n"}, {About: "a"}, {Picture: "p"}, {LUD16: "l"}, {NIP05: "i"}} {
		editing.Go(func() {
			if _, err := desk.editor.Edit(patient(t), request, desk.account); err != nil {
				t.Error(err)
			}
		})
	}
	editing.Wait()
	stored := stored(t, hostr, who.pubkey)
	if len(stored) != 1 {
		t.Fatalf("the relay holds %d versions", len(stored))
	}
	if want := `{"name":"n","picture":"p","about":"a","nip05":"i","lud16":"l"}`; stored[0].Content != want {
		t.Errorf("content %s, want %s", stored[0].Content, want)
	}
}

func TestSignersErrorIsKept(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	hostr := relayWith(t)
	desk := newHouse(t).desk(accountOf(t, who.key), nil, hostr.RelayURL)
	refused := errors.New("Not authorized")
	author := signs{who.pubkey, func(context.Context, *nostr.Event) error { return refused }}
	if _, err := desk.editor.Edit(patient(t), profiles.EditRequest{Name: "N"}, author); !errors.Is(err, refused) {
		t.Errorf("%v, want the signer's", err)
	}
	if sent := hostr.Relay.Counters().EVENTs; sent != 0 {
		t.Errorf("%d events were sent", sent)
	}
}

// Whoever waits behind an edit that a person has to approve can give up.
func TestWaitingEditEndsWithItsContext(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	hostr := relayWith(t)
	desk := newHouse(t).desk(accountOf(t, who.key), nil, hostr.RelayURL)
	atSigner, approved := make(chan struct{}), make(chan struct{})
	slow := signs{who.pubkey, func(ctx context.Context, event *nostr.Event) error {
		close(atSigner)
		<-approved
		return desk.account.SignEvent(ctx, event)
	}}
	first := make(chan error, 1)
	go func() {
		_, err := desk.editor.Edit(patient(t), profiles.EditRequest{Name: "N"}, slow)
		first <- err
	}()
	select {
	case <-atSigner:
	case err := <-first:
		t.Fatal(err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(patient(t))
	cancel(enough)
	if _, err := desk.editor.Edit(ctx, profiles.EditRequest{About: "A"}, desk.account); !errors.Is(err, enough) {
		t.Errorf("%v, want the cause", err)
	}
	close(approved)
	if err := receive(patient(t), t, first); err != nil {
		t.Error(err)
	}
}

// Without a Hostr relay the bootstrap relays stand in for it.
func TestEditWithoutAHostrRelay(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	one, two := relayWith(t), relayWith(t, who.writes(t, nostr.Now()-100, `{"about":"a"}`))
	desk := newHouse(t).desk(accountOf(t, who.key), nil, "", one.RelayURL, two.RelayURL)
	edited := desk.edit(t, profiles.EditRequest{Name: "N"})
	if edited.Profile.About != "a" {
		t.Errorf("content %s", edited.Event.Content)
	}
	wantReceipts(t, edited.Receipts, map[string]bool{one.RelayURL: true, two.RelayURL: true})
}

func TestEditedProfileEncodes(t *testing.T) {
	t.Parallel()
	hostr := relayWith(t)
	desk := newHouse(t).desk(accountOf(t, vectorKey), nil, hostr.RelayURL)
	desk.at(vectorTime)
	edited, err := desk.editor.Edit(patient(t), profiles.EditRequest{Name: "N", DryRun: true}, desk.account)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(edited.Profile.EventJSON())
	if err != nil || !strings.Contains(string(text), `"sig":null`) || !strings.Contains(string(text), `"tags":[]`) {
		t.Errorf("%s, %v", text, err)
	}
}

// refusingREQs makes a relay close every request for good.
var refusingREQs = sandbox.Faults{Closed: "blocked: not for you"}

// desk is where one account edits its profile.
type desk struct {
	editor  *profiles.Editor
	service *profiles.Service
	account *signer.Local
	now     *time.Time
}

// desk opens a session of the account on a relay client of its own.
func (h *house) desk(account *signer.Local, lists writeRelays, hostr string, public ...string) desk {
	h.t.Helper()
	client := h.client(account, hostr, public...)
	service := profiles.New(client, hostr, slices.DeleteFunc(append([]string{hostr}, public...), isEmpty), h.cache)
	h.t.Cleanup(service.Close)
	opened := desk{service: service, account: account, now: new(time.Time)}
	opened.editor = profiles.NewEditor(service, client, lists, func() time.Time {
		if opened.now.IsZero() {
			return time.Now()
		}
		return *opened.now
	})
	return opened
}

func (h *house) client(account *signer.Local, hostr string, public ...string) *relay.Client {
	h.t.Helper()
	verifier := relay.NewVerifier(nil, zerolog.Nop())
	client, err := relay.NewClient(relay.Config{
		HostrRelay: hostr, Bootstrap: public, Account: account, Verifier: verifier, Logger: zerolog.Nop(),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		client.Close()
		verifier.Close()
	})
	return client
}

// at holds the editor's clock still. It is called before the first edit.
func (d desk) at(now time.Time) { *d.now = now }

func (d desk) edit(t testing.TB, request profiles.EditRequest) profiles.Edited {
	t.Helper()
	edited, err := d.editor.Edit(patient(t), request, d.account)
	if err != nil {
		t.Fatal(err)
	}
	if valid, err := edited.Event.CheckSignature(); !valid || err != nil || !edited.Event.CheckID() {
		t.Fatalf("event %s: signature %t, %v", edited.Event, valid, err)
	}
	return edited
}

func accountOf(t testing.TB, key string) *signer.Local {
	t.Helper()
	account, err := signer.NewLocal(key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(account.Close)
	return account
}

// writeRelays are the write relays by pubkey.
type writeRelays map[string][]string

func (w writeRelays) WriteRelays(pubkey string) []string { return w[pubkey] }

// countingAuthor counts what is signed.
type countingAuthor struct {
	profiles.Author
	signed int
}

func (a *countingAuthor) SignEvent(ctx context.Context, event *nostr.Event) error {
	a.signed++
	return a.Author.SignEvent(ctx, event)
}

// signs is an author whose signer does as it is told.
type signs struct {
	pubkey string
	sign   func(context.Context, *nostr.Event) error
}

func (s signs) PublicKey() string { return s.pubkey }

func (s signs) SignEvent(ctx context.Context, event *nostr.Event) error { return s.sign(ctx, event) }

// scriptedQueries answer by the options.
type scriptedQueries struct {
	answer func(relay.QueryOptions) relay.Answer
}

func (s scriptedQueries) Query(_ context.Context, _ nostr.Filter, options relay.QueryOptions) (relay.Answer, error) {
	return s.answer(options), nil
}

func relayHolding(t testing.TB, event *nostr.Event) *sandbox.Market {
	t.Helper()
	if event == nil {
		return relayWith(t)
	}
	return relayWith(t, *event)
}

// stored returns the profiles of a pubkey that a relay holds.
func stored(t testing.TB, market *sandbox.Market, pubkey string) []nostr.Event {
	t.Helper()
	events, err := market.Relay.Query(patient(t), nostr.Filter{Kinds: []int{0}, Authors: []string{pubkey}})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// wantReceipts compares which relays were sent the event and which took it.
func wantReceipts(t testing.TB, receipts []relay.Receipt, want map[string]bool) {
	t.Helper()
	got := map[string]bool{}
	for _, receipt := range receipts {
		got[receipt.RelayURL] = receipt.BroadcastSuccessful
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("receipts (-want +got):\n%s\n%+v", diff, receipts)
	}
}

func isEmpty(text string) bool { return text == "" }

func BenchmarkEdit(b *testing.B) {
	who := newPerson(b)
	hostr := relayWith(b)
	desk := newHouse(b).desk(accountOf(b, who.key), nil, hostr.RelayURL)
	desk.at(time.Now().Add(-30 * 24 * time.Hour)) // each version is a second later than the one before
	b.ReportAllocs()
	for b.Loop() {
		desk.edit(b, profiles.EditRequest{Name: "Casa Azul"})
	}
}
