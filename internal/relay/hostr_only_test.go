package relay

import (
	"slices"
	"testing"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	const hostr, public, other = "wss://hostr.example.org", "wss://public.example.org", "wss://other.example.org"
	// The vectors of spec 82 §3 and its rules for lists; nil is the default relays.
	for name, test := range map[string]struct {
		kinds         []int
		relays, want  []string
		withoutItself bool
	}{
		"one restricted kind forces the filter":     {kinds: []int{0, 30402}, relays: []string{public}, want: []string{hostr}},
		"the Hostr relay alone stays":               {kinds: []int{30402}, relays: []string{hostr}, want: []string{hostr}},
		"free kinds stay":                           {kinds: []int{0, 1}, relays: []string{public, other}, want: []string{public, other}},
		"no kinds stay":                             {relays: []string{public}, want: []string{public}},
		"no kinds, no relays":                       {},
		"free kinds, no relays":                     {kinds: []int{0}},
		"publish to nowhere in particular":          {kinds: []int{30402}, want: []string{hostr}},
		"an empty list is none":                     {kinds: []int{30402}, relays: []string{}, want: []string{hostr}},
		"an empty list of a free kind is none":      {kinds: []int{1}, relays: []string{}},
		"gift wraps are free":                       {kinds: []int{1059}, relays: []string{public, hostr}, want: []string{public, hostr}},
		"the Hostr relay among others is not alone": {kinds: []int{32122}, relays: []string{hostr, public}, want: []string{hostr}},
		"without a Hostr relay there is nobody":     {kinds: []int{30402}, relays: []string{public}, want: []string{}, withoutItself: true},
	} {
		own := hostr
		if test.withoutItself {
			own = ""
		}
		got := guard(test.kinds, test.relays, own)
		if !slices.Equal(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestHostrOnlyKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range []int{1059, 0, 4, 5, 14, 9734, 9735, 10002, 10050, 24133, 31555} {
		if hasHostrOnlyKind([]int{kind}) {
			t.Errorf("kind %d is kept to the Hostr relay", kind)
		}
	}
	if len(hostrOnlyKinds) != 16 {
		t.Errorf("%d kinds, spec 82 §3 lists 16", len(hostrOnlyKinds))
	}
}

func TestCleanList(t *testing.T) {
	t.Parallel()
	given := []string{"wss://A.example.org/", "", "x", "wss://a.example.org", blockedRelay + ":443/", "ws://b:80"}
	if got, want := cleanList(given, "wss://hostr.example.org"), []string{"wss://a.example.org", "ws://b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := cleanList(given, blockedRelay); !slices.Contains(got, blockedRelay) {
		t.Errorf("the blocked relay is refused where it is the Hostr relay: %q", got)
	}
}
