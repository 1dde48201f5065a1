package threads_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/threads"
)

// pubkeyOf returns a pubkey that is nobody's; of b, c and f no point is on the curve.
// pubkeyOf is the public key of a private key that is one digit over and over.
func pubkeyOf(digit string) string {
	pubkey, err := nostr.GetPublicKey(strings.Repeat(digit, 64))
	if err != nil {
		panic(err)
	}
	return pubkey
}

// census looks people up and remembers for whom it was asked.
type census struct {
	mu       sync.Mutex
	profiles map[string]string
	asked    map[string]int
}

func (c *census) find(_ context.Context, pubkey string) (*market.Profile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[pubkey]++
	content, known := c.profiles[pubkey]
	if !known {
		return nil, errors.New("no relay answers")
	}
	return market.DecodeProfile(&nostr.Event{PubKey: pubkey, Kind: nostr.KindProfileMetadata, Content: content})
}

func (c *census) service() *threads.Service {
	return threads.New(threads.Config{Me: pubkeyOf("a"), Profile: c.find})
}

func TestPeople(t *testing.T) {
	t.Parallel()
	census := &census{asked: map[string]int{}, profiles: map[string]string{
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
		pubkeyOf("a"): "me", pubkeyOf("2"): "Harbour Host", pubkeyOf("3"): "n", pubkeyOf("d"): pubkeyOf("d")[:8] + "...", "no pubkey": "no pubkey",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if census.asked["no pubkey"] != 0 || people.One(pubkeyOf("e")).Name != pubkeyOf("e")[:8]+"..." {
		t.Errorf("asked %v, %+v", census.asked, people.One(pubkeyOf("e")))
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
