package threads_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/threads"
)

// pubkeyOf returns a pubkey that is nobody's; of b, c and f no point is on the curve.
func pubkeyOf(digit string) string { return strings.Repeat(digit, 64) }

// census looks people up and remembers for whom it was asked.
type census struct {
	mu       sync.Mutex
	profiles map[string]string
	failing  bool
	asked    map[string]int
	now      time.Time
}

func (c *census) find(_ context.Context, pubkey string) (*market.Profile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[pubkey]++
	if c.failing {
		return nil, errors.New("no relay answers")
	}
	content, known := c.profiles[pubkey]
	if !known {
		return nil, nil
	}
	return market.DecodeProfile(&nostr.Event{PubKey: pubkey, Kind: nostr.KindProfileMetadata, Content: content})
}

func (c *census) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *census) set(failing bool, later time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing, c.now, c.asked = failing, c.now.Add(later), map[string]int{}
}

func (c *census) service() *threads.Service {
	return threads.New(threads.Config{Me: pubkeyOf("a"), Profile: c.find, Now: c.clock})
}

func TestPeople(t *testing.T) {
	t.Parallel()
	census := &census{now: time.Unix(1800000000, 0), asked: map[string]int{}, profiles: map[string]string{
		pubkeyOf("a"): `{"name":"me"}`, pubkeyOf("2"): `{"name":"harbour","display_name":"Harbour Host"}`, pubkeyOf("3"): `{"display_name":" ","name":"n"}`,
	}}
	service := census.service()
	thread := market.NewThread(pubkeyOf("a"), []string{pubkeyOf("2"), pubkeyOf("3"), pubkeyOf("d"), "no pubkey"}, "")
	people, err := service.People(patient(t), thread)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for pubkey, summary := range people {
		names[pubkey] = summary.Name
	}
	want := map[string]string{
		pubkeyOf("a"): "me", pubkeyOf("2"): "Harbour Host", pubkeyOf("3"): "n", pubkeyOf("d"): "dddddddd...", "no pubkey": "no pubkey",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if census.asked["no pubkey"] != 0 || people.One(pubkeyOf("e")).Name != "eeeeeeee..." {
		t.Errorf("asked %v, %+v", census.asked, people.One(pubkeyOf("e")))
	}
}

func TestMissingProfilesAreRemembered(t *testing.T) {
	t.Parallel()
	census := &census{now: time.Unix(1800000000, 0), asked: map[string]int{}, profiles: map[string]string{pubkeyOf("a"): "{}"}}
	service := census.service()
	nobody := market.NewThread(pubkeyOf("a"), []string{pubkeyOf("d")}, "")
	for _, step := range []struct {
		what    string
		failing bool
		later   time.Duration
		asked   int
	}{
		{"a failure is no profile", true, 0, 1},
		{"and is tried again", false, 0, 1},
		{"nobody is not asked for again", false, 59 * time.Second, 0},
		{"for a minute", false, 2 * time.Second, 1},
	} {
		census.set(step.failing, step.later)
		people, err := service.People(patient(t), nobody)
		if err != nil || people.One(pubkeyOf("d")).Name != "dddddddd..." {
			t.Errorf("%s: %+v, %v", step.what, people, err)
		}
		if got := census.asked[pubkeyOf("d")]; got != step.asked {
			t.Errorf("%s: asked %d times", step.what, got)
		}
	}
}

func TestPeopleEndWithTheCall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("the caller has gone")
	service := threads.New(threads.Config{Me: pubkeyOf("a"), Profile: func(ctx context.Context, _ string) (*market.Profile, error) {
		cancel(why)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}})
	if _, err := service.People(ctx); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	broken := threads.New(threads.Config{Me: pubkeyOf("a"), Profile: func(context.Context, string) (*market.Profile, error) {
		panic("secret")
	}})
	if _, err := broken.People(patient(t)); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
