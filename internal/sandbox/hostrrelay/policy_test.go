package hostrrelay

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nbd-wtf/go-nostr"
)

func TestPolicyRefusal(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767225600, 0)
	policy := NewPolicy(func() time.Time { return now })
	const host, other = "host", "other"
	cases := []struct {
		name   string
		event  nostr.Event
		authed string
		want   string // prefix of the reason, "" for accepted
	}{
		{"unknown kind before everything", event("1", 1, host, 0), "", "unsupported-kind: "},
		{"unknown kind with AUTH", event("1", 10002, host, 0), host, "unsupported-kind: "},
		{"contact list", event("1", 3, host, 0), host, "unsupported-kind: "},
		{"Blossom servers", event("1", 10063, host, 0), host, "unsupported-kind: "},
		{"listing without AUTH", event("1", 30402, host, 0), "", "auth-required: "},
		{"listing by its author", event("1", 30402, host, 0), host, ""},
		{"listing of somebody else", event("1", 30402, other, 0), host, "auth-required: "},
		{"trade order of another key", event("1", 32122, other, 0), host, ""},
		{"trade order without AUTH", event("1", 32122, other, 0), "", "auth-required: "},
		{"transition of another key", event("1", 1326, other, 0), host, ""},
		{"gift wrap of another key", event("1", 1059, other, 0), host, ""},
		{"gift wrap without AUTH", event("1", 1059, other, 0), "", "auth-required: "},
		{"review of another key", event("1", 31555, other, 0), host, "auth-required: "},
		{"at the edge of the future", event("1", 30402, host, int(now.Unix())+1800), host, ""},
		{"too far in the future", event("1", 30402, host, int(now.Unix())+1801), host, "invalid: "},
		{"d tag without value", event("1", 30402, host, 0, nostr.Tag{"d"}), host, "invalid: "},
	}
	for _, kind := range []int{13194, 23194, 23195, 23196, 23197, 24133} {
		cases = append(cases, struct {
			name   string
			event  nostr.Event
			authed string
			want   string
		}{"open kind without AUTH", event("1", kind, other, 0), "", ""})
	}
	for _, c := range cases {
		got := policy.Refusal(&c.event, c.authed)
		if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s (kind %d): %q, want %q…", c.name, c.event.Kind, got, c.want)
		}
	}
}

func TestPolicyAllowsExactlyTheListedKinds(t *testing.T) {
	t.Parallel()
	policy := NewPolicy(time.Now)
	want := []int{
		0, 4, 5, 7, 8, 13, 14, 16, 1059, 1326, 1327, 1328, 1329, 9734, 9735, 10008, 10017, 10050, 13194,
		17388, 17389, 22242, 23194, 23195, 23196, 23197, 24133, 30009, 30010, 30302, 30303, 30402, 31555, 32122,
	}
	for kind := range 40000 {
		made := event("1", kind, "host", 0)
		if refused := policy.Refusal(&made, "host") != ""; refused == slices.Contains(want, kind) {
			t.Errorf("kind %d: refused is %t", kind, refused)
		}
	}
}

func TestPolicyVisible(t *testing.T) {
	t.Parallel()
	policy := NewPolicy(time.Now)
	tags := nostr.Tags{{"p"}, {"p", "first"}, {"p", "second"}}
	for _, kind := range []int{4, 44, 1059} {
		for reader, want := range map[string]bool{"": false, "author": true, "first": true, "second": false, "nobody": false} {
			made := event("1", kind, "author", 0, tags...)
			if got := policy.Visible(&made, reader); got != want {
				t.Errorf("kind %d to %q: %t, want %t", kind, reader, got, want)
			}
		}
	}
	listing := event("1", 30402, "author", 0)
	if !policy.Visible(&listing, "") {
		t.Error("a listing must be visible to everybody")
	}
}
