package profiles_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/profiles"
	"hostr-daemon/internal/relay"
	"hostr-daemon/internal/sandbox"
)

func TestLookupOrder(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	version := func(createdAt nostr.Timestamp, name string) nostr.Event {
		return who.writes(t, createdAt, `{"name":"`+name+`"}`)
	}
	for name, c := range map[string]struct {
		hostr  []nostr.Event
		public [][]nostr.Event
		want   string
	}{
		"the Hostr relay's wins over a newer public one": {
			hostr:  []nostr.Event{version(100, "at Hostr")},
			public: [][]nostr.Event{{version(200, "elsewhere")}},
			want:   "at Hostr",
		},
		"the newest public one wins where Hostr has none": {
			public: [][]nostr.Event{{version(200, "older")}, {version(300, "newest")}, {version(100, "oldest")}, nil},
			want:   "newest",
		},
		"content that is no object counts as none": {
			hostr:  []nostr.Event{who.writes(t, 300, `"a text"`)},
			public: [][]nostr.Event{{who.writes(t, 200, `[1,2]`)}, {version(100, "an object")}},
			want:   "an object",
		},
		"blank content is a profile without a name": {
			hostr:  []nostr.Event{who.writes(t, 300, "  ")},
			public: [][]nostr.Event{{version(400, "named")}},
			want:   "blank",
		},
		"nowhere": {public: [][]nostr.Event{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hostr := relayWith(t, c.hostr...)
			var public []*sandbox.Market
			for _, events := range c.public {
				public = append(public, relayWith(t, events...))
			}
			service, _ := newHouse(t).session(hostr.RelayURL, urls(public...)...)
			got := find(t, service, who.pubkey)
			if c.want == "blank" {
				if got.err != nil || got.Profile == nil || got.Profile.Name != "" {
					t.Fatalf("found %+v, %v", got.Profile, got.err)
				}
				return
			}
			wantName(t, got, c.want)
			if got.Warning != nil {
				t.Errorf("all relays answered in full, but: %v", got.Warning)
			}
		})
	}
}

func TestLookupKeepsTheEventAsFound(t *testing.T) {
	t.Parallel()
	market := relayWith(t)
	host := market.Hosts[1]
	service, _ := newHouse(t).session(market.RelayURL)
	got := find(t, service, host.PublicKey)
	wantName(t, got, host.Name)
	if found := got.Profile.Event; found.ID != host.Profile.ID || found.Sig != host.Profile.Sig || found.Content != host.Profile.Content {
		t.Errorf("event %s, want it as signed: %s", found, host.Profile)
	}
}

// A Hostr relay that stays silent costs five seconds, not the profile.
func TestSilentHostrRelay(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	hostr := relayWith(t)
	hostr.Relay.Break(sandbox.Faults{NoEOSE: true})
	public := relayWith(t, who.writes(t, 100, `{"name":"elsewhere"}`))
	house := newHouse(t)
	service, _ := house.session(hostr.RelayURL, public.RelayURL)
	ctx := patient(t)

	outcomes := lookups(ctx, service, who.pubkey, 1)
	awaitREQ(ctx, t, hostr, who.pubkey, 1)
	house.clock.await(ctx, t, 5*time.Second)
	select {
	case early := <-outcomes:
		t.Fatalf("an answer came before the Hostr relay's five seconds were over: %+v", early)
	default:
	}
	house.clock.pass(5 * time.Second)
	wantName(t, receive(ctx, t, outcomes), "elsewhere")
}

// What the Hostr relay has sent counts although it never said that this was all.
func TestIncompleteAnswerOfTheHostrRelayStillWins(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	atHostr, elsewhere := who.writes(t, 100, `{"name":"at Hostr"}`), who.writes(t, 200, `{"name":"elsewhere"}`)
	relays := scripted{func(url string) (relay.Answer, error) {
		if url == "wss://hostr.example.org" {
			return relay.Answer{Events: []*nostr.Event{&atHostr}}, nil
		}
		return relay.Answer{Events: []*nostr.Event{&elsewhere}, Complete: true}, nil
	}}
	bootstrap := []string{"wss://hostr.example.org", "wss://public.example.org"}
	service := profiles.New(relays, bootstrap[0], bootstrap, newHouse(t).cache)
	t.Cleanup(service.Close)
	wantName(t, find(t, service, who.pubkey), "at Hostr")
}

func TestNotFoundWarnsOfRelaysCutOff(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	healthy := relayWith(t)
	refusing := relayWith(t)
	refusing.Relay.Break(sandbox.Faults{Closed: "blocked: not for you"})
	for name, c := range map[string]struct {
		hostr  string
		public []string
		named  []string
	}{
		"Hostr relay refuses":      {hostr: refusing.RelayURL, public: []string{healthy.RelayURL}, named: []string{refusing.RelayURL, "not for you"}},
		"a public one refuses":     {hostr: healthy.RelayURL, public: []string{refusing.RelayURL}, named: []string{refusing.RelayURL, "not for you"}},
		"all of them cannot serve": {hostr: refusing.RelayURL, public: []string{unreachable}, named: []string{refusing.RelayURL, unreachable}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service, _ := newHouse(t).session(c.hostr, c.public...)
			got := find(t, service, who.pubkey)
			wantName(t, got, "")
			if got.Warning == nil || got.Warning.Code != fault.PartialResult || !got.Warning.Retryable {
				t.Fatalf("warning %+v", got.Warning)
			}
			for _, named := range c.named {
				if !strings.Contains(got.Warning.Message, named) {
					t.Errorf("%q does not name %s", got.Warning.Message, named)
				}
			}
		})
	}
}

func TestKnownProfilesAreServedAndRenewed(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	market := relayWith(t, who.writes(t, 100, `{"name":"first"}`))
	house := newHouse(t)
	service, _ := house.session(market.RelayURL)
	ctx := patient(t)

	wantName(t, find(t, service, who.pubkey), "first")
	if err := market.Relay.Insert(ctx, who.writes(t, 200, `{"name":"second"}`)); err != nil {
		t.Fatal(err)
	}
	house.clock.pass(5*time.Minute - time.Second)
	wantName(t, find(t, service, who.pubkey), "first")
	if asked := profileREQs(market, who.pubkey); asked != 1 {
		t.Fatalf("a fresh profile was asked for again: %d requests", asked)
	}

	house.clock.pass(time.Second)
	wantName(t, find(t, service, who.pubkey), "first") // at once, whatever the relay does
	awaitREQ(ctx, t, market, who.pubkey, 2)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		got := find(t, service, who.pubkey)
		if got.Profile.Name == "second" {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal("the profile was never renewed")
		}
	}
	if asked := profileREQs(market, who.pubkey); asked != 2 {
		t.Errorf("%d requests, want the first and one renewal", asked)
	}
}

// A renewal that fails, or finds an older version, takes nothing away.
// A search that finds nobody asks all relays to the end, so it is not repeated at once.
func TestShownRemembersWhoHasNone(t *testing.T) {
	t.Parallel()
	who, hostr, house := newPerson(t), relayWith(t), newHouse(t)
	service, _ := house.session(hostr.RelayURL)
	other, _ := house.session(hostr.RelayURL)
	for _, step := range []struct {
		what     string
		by       *profiles.Service
		later    time.Duration
		searches int
	}{
		{"the first time", service, 0, 1},
		{"again", service, 59 * time.Second, 1},
		{"by another session", other, 0, 1},
		{"after a minute", service, time.Second, 2},
	} {
		house.clock.pass(step.later)
		if profile, err := step.by.Shown(patient(t), who.pubkey); profile != nil || err != nil {
			t.Errorf("%s: %v, %v", step.what, profile, err)
		}
		if got := profileREQs(hostr, who.pubkey); got != step.searches {
			t.Errorf("%s: %d searches, want %d", step.what, got, step.searches)
		}
	}
	if got := find(t, service, who.pubkey); got.Profile != nil || profileREQs(hostr, who.pubkey) != 3 {
		t.Error("whoever looks somebody up does not get what is remembered")
	}
	house.cache.Put(decoded(t, who.writes(t, 100, `{"name":"new"}`)))
	if profile, err := service.Shown(patient(t), who.pubkey); err != nil || profile == nil || profile.Name != "new" {
		t.Errorf("a new profile: %v, %v", profile, err)
	}
}

// A failure says nothing of the person.
func TestShownRemembersNoFailure(t *testing.T) {
	t.Parallel()
	house := newHouse(t)
	failing := profiles.New(scripted{query: func(string) (relay.Answer, error) { return relay.Answer{}, errors.New("broken") }}, "wss://hostr.test", nil, house.cache)
	t.Cleanup(failing.Close)
	who := newPerson(t)
	if _, err := failing.Shown(patient(t), who.pubkey); err == nil {
		t.Fatal("no error")
	}
	service, _ := house.session(relayWith(t, who.writes(t, 100, `{"name":"there"}`)).RelayURL)
	if profile, err := service.Shown(patient(t), who.pubkey); err != nil || profile == nil {
		t.Errorf("%v, %v", profile, err)
	}
}

func TestRenewalLosesNothing(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	hostr := relayWith(t)
	public := relayWith(t, who.writes(t, 200, `{"name":"newest"}`))
	house := newHouse(t)
	service, _ := house.session(hostr.RelayURL, public.RelayURL)
	ctx := patient(t)
	wantName(t, find(t, service, who.pubkey), "newest")

	public.Relay.Break(sandbox.Faults{Closed: "blocked: out of order"})
	house.clock.pass(6 * time.Minute)
	wantName(t, find(t, service, who.pubkey), "newest")
	awaitREQ(ctx, t, hostr, who.pubkey, 2)

	if err := hostr.Relay.Insert(ctx, who.writes(t, 100, `{"name":"old"}`)); err != nil {
		t.Fatal(err)
	}
	for asked := profileREQs(hostr, who.pubkey); asked < 4; asked = profileREQs(hostr, who.pubkey) {
		house.clock.pass(6 * time.Minute)
		wantName(t, find(t, service, who.pubkey), "newest")
		if ctx.Err() != nil {
			t.Fatal("the profile is not renewed any more")
		}
	}
}

func TestPutKeepsTheNewestVersion(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	house := newHouse(t)
	service, _ := house.session(unreachable)
	for _, c := range []struct {
		createdAt  nostr.Timestamp
		name, want string
	}{{200, "newest", "newest"}, {100, "older", "newest"}, {300, "edited", "edited"}} {
		house.cache.Put(decoded(t, who.writes(t, c.createdAt, `{"name":"`+c.name+`"}`)))
		wantName(t, find(t, service, who.pubkey), c.want)
	}
}

// A profile as large as a relay's frame is shown, but does not stay in memory.
func TestHugeProfilesAreNotRemembered(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	market := relayWith(t, who.writes(t, 100, `{"name":"huge","about":"`+strings.Repeat("a", 100<<10)+`"}`))
	service, _ := newHouse(t).session(market.RelayURL)
	for asked := 1; asked <= 2; asked++ {
		wantName(t, find(t, service, who.pubkey), "huge")
		if got := profileREQs(market, who.pubkey); got != asked {
			t.Errorf("%d requests, want %d", got, asked)
		}
	}
}

func TestHundredCallersAreOneRequest(t *testing.T) {
	t.Parallel()
	const callers = 100
	who := newPerson(t)
	market := relayWith(t, who.writes(t, 100, `{"name":"popular"}`))
	service, _ := newHouse(t).session(market.RelayURL)
	ctx := patient(t)
	outcomes := lookups(ctx, service, who.pubkey, callers)
	for range callers {
		wantName(t, receive(ctx, t, outcomes), "popular")
	}
	if asked := profileREQs(market, who.pubkey); asked != 1 {
		t.Errorf("%d requests for %d callers, want 1", asked, callers)
	}
}

func TestCancelledCallerLeavesOthersWaiting(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	hostr := relayWith(t)
	hostr.Relay.Break(sandbox.Faults{NoEOSE: true})
	public := relayWith(t, who.writes(t, 100, `{"name":"patient"}`))
	house := newHouse(t)
	service, _ := house.session(hostr.RelayURL, public.RelayURL)
	ctx := patient(t)

	hasty, cancel := context.WithCancelCause(ctx)
	first := lookups(hasty, service, who.pubkey, 1) // the one that starts the look-up
	awaitREQ(ctx, t, hostr, who.pubkey, 1)
	others := lookups(ctx, service, who.pubkey, 3)
	cause := errors.New("the caller has changed their mind")
	cancel(cause)
	if got := receive(ctx, t, first); !errors.Is(got.err, cause) {
		t.Errorf("the cancelled caller got %v", got.err)
	}
	house.clock.await(ctx, t, 5*time.Second)
	house.clock.pass(5 * time.Second)
	for range 3 {
		wantName(t, receive(ctx, t, others), "patient")
	}
	if asked := profileREQs(hostr, who.pubkey); asked != 1 {
		t.Errorf("%d requests, want 1", asked)
	}
}

func TestCloseEndsLookupsUnderWay(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	market := relayWith(t)
	market.Relay.Break(sandbox.Faults{NoEOSE: true})
	service, end := newHouse(t).session(market.RelayURL, unreachable)
	ctx := patient(t)
	outcomes := lookups(ctx, service, who.pubkey, 3)
	awaitREQ(ctx, t, market, who.pubkey, 1)
	end()
	for range 3 {
		if got := receive(ctx, t, outcomes); !errors.Is(got.err, profiles.ErrClosed) {
			t.Errorf("a caller of a closed session got %+v", got)
		}
	}
	if _, err := service.Lookup(ctx, who.pubkey); !errors.Is(err, profiles.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	service.Close() // again, harmless
}

// The sessions of a process share what is known. One that is closed takes nothing
// from the others.
func TestClosedSessionLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	who := newPerson(t)
	silent := relayWith(t)
	silent.Relay.Break(sandbox.Faults{NoEOSE: true})
	healthy := relayWith(t, who.writes(t, 100, `{"name":"found all the same"}`))
	house := newHouse(t)
	closing, end := house.session(silent.RelayURL)
	staying, _ := house.session(healthy.RelayURL)
	ctx := patient(t)

	ended := lookups(ctx, closing, who.pubkey, 1)
	awaitREQ(ctx, t, silent, who.pubkey, 1)
	end()
	if got := receive(ctx, t, ended); !errors.Is(got.err, profiles.ErrClosed) {
		t.Errorf("the closed session's caller got %+v", got)
	}
	others := lookups(ctx, staying, who.pubkey, 5)
	for range 5 {
		wantName(t, receive(ctx, t, others), "found all the same")
	}
	third, _ := house.session(unreachable)
	wantName(t, find(t, third, who.pubkey), "found all the same")
}

// scripted is a relay layer that answers in ways no relay can be brought to at a
// given moment.
type scripted struct {
	query func(url string) (relay.Answer, error)
}

func (s scripted) Query(_ context.Context, _ nostr.Filter, options relay.QueryOptions) (relay.Answer, error) {
	return s.query(options.Relays[0])
}

func TestFailureOfTheRelayLayerReachesTheCaller(t *testing.T) {
	t.Parallel()
	closed := scripted{func(string) (relay.Answer, error) { return relay.Answer{}, relay.ErrClosed }}
	service := profiles.New(closed, "wss://hostr.example.org", nil, newHouse(t).cache)
	t.Cleanup(service.Close)
	if got := find(t, service, newPerson(t).pubkey); !errors.Is(got.err, relay.ErrClosed) {
		t.Errorf("got %+v, want %v", got, relay.ErrClosed)
	}
}

type panicking struct{}

func (panicking) Query(context.Context, nostr.Filter, relay.QueryOptions) (relay.Answer, error) {
	panic("out of order")
}

// A panic behind a look-up is an answer to its callers, not the end of the process.
func TestPanicIsContained(t *testing.T) {
	t.Parallel()
	service := profiles.New(panicking{}, "wss://hostr.example.org", nil, newHouse(t).cache)
	t.Cleanup(service.Close)
	for range 2 {
		if got := find(t, service, newPerson(t).pubkey); got.err == nil || !strings.Contains(got.err.Error(), "unexpectedly") {
			t.Errorf("got %+v", got)
		}
	}
}

func BenchmarkLookupOfKnownProfile(b *testing.B) {
	who := newPerson(b)
	house := newHouse(b)
	house.cache.Put(decoded(b, who.writes(b, 100, `{"name":"known"}`)))
	service, _ := house.session(unreachable)
	ctx := b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if found, err := service.Lookup(ctx, who.pubkey); err != nil || found.Profile == nil {
				b.Errorf("found %+v, %v", found, err)
				return
			}
		}
	})
}
