package conversation

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hostr-daemon/internal/sandbox"
)

// market starts a market for one test and writes what the stand-in must know.
func market(t *testing.T) (market *sandbox.Market, knows string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	market, err := sandbox.Start(ctx, sandbox.Options{Listings: 55, Hosts: 4, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = market.Close() })
	text, err := json.Marshal(newKnowledge(market))
	if err != nil {
		t.Fatal(err)
	}
	knows = filepath.Join(t.TempDir(), "knowledge.json")
	if err := os.WriteFile(knows, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return market, knows
}

// talkWith holds the conversation with a stand-in that has a flaw.
func talkWith(ctx context.Context, t *testing.T, market *sandbox.Market, knows, flaw string) (Report, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A race-built child would otherwise sleep a second at its end.
	environment := []string{standInFlaw + "=" + flaw, standInFile + "=" + knows, "GORACE=atexit_sleep_ms=0"}
	child, err := Spawn(self, nil, environment)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	return hold(ctx, child, Options{Market: market, Out: &out, StrangersOnly: true}), out.String()
}

func TestRightAnswersPass(t *testing.T) {
	t.Parallel()
	market, knows := market(t)
	report, out := talkWith(context.Background(), t, market, knows, "none")
	if len(report.Wrong) > 0 || report.Right < 35 {
		t.Errorf("%d were right, wrong were %q\n%s", report.Right, report.Wrong, out)
	}
	if !strings.Contains(report.Log, "hello from the stand-in") {
		t.Errorf("the log is %q", report.Log)
	}
	for _, want := range []string{"→ {", "← {", "✓ exactly the listings in Santa Tecla: ", "1. What can you do?"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not hold %q", want)
		}
	}
	if _, last, _ := strings.Cut(out, "Ask many things at once"); strings.Contains(last, "→") || strings.Contains(last, "←") {
		t.Errorf("the last step shows frames: %s", last)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "\x1b") || len([]rune(line)) > plainWidth+1 {
			t.Errorf("coloured or too long: %q", line)
		}
	}
}

func TestWrongAnswersAreNamed(t *testing.T) {
	t.Parallel()
	market, knows := market(t)
	for flaw, want := range map[string]string{
		"order":         "Find places to stay: not the newest listings: the right listings, but not newest first",
		"missing":       "Find places to stay: not the newest listings: 9 listings instead of 10: missing [",
		"twice":         "Find places to stay: not the newest listings: some listings come more than once",
		"count":         "Find places to stay: not the newest listings: count says 11, but there are 10 listings",
		"price":         "prices is ",
		"profile":       "Who is this host?: metadata.about is somebody else instead of ",
		"environment":   "Who am I?: the envelope must name the action hostr.session.status, the environment development and dryRun false",
		"warning":       "Find places to stay: the answer is said to be incomplete: partial_result",
		"code":          "Ask for something that does not exist: expected code invalid_listing_type at type, got other_code at type",
		"trace":         `What can you do?: the answer carries the trace id "another" instead of "sandbox-try-0001"`,
		"answers twice": "Goodbye: not so: its output held one answer per request and nothing else (1 lines",
		"noise":         "Goodbye: not so: its output held one answer per request and nothing else (1 lines, the first is just a remark)",
		"exit code":     "Goodbye: not so: it exits with code 0",
		"lazy":          "Meet a relay that lies: not so: the relay sent",
		"dies":          "What may I do?: the daemon ended before it answered request 12345678901234567890",
	} {
		report, _ := talkWith(context.Background(), t, market, knows, flaw)
		if !slices.ContainsFunc(report.Wrong, func(wrong string) bool { return strings.Contains(wrong, want) }) {
			t.Errorf("%s: wrong were %q, want %q", flaw, report.Wrong, want)
		}
	}
}

func TestASilentDaemonIsGivenUp(t *testing.T) {
	t.Parallel()
	market, knows := market(t)
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	report, _ := talkWith(ctx, t, market, knows, "silent")
	if len(report.Wrong) == 0 || !strings.Contains(report.Wrong[0], "What can you do?: no answer to request") {
		t.Errorf("wrong were %q", report.Wrong)
	}
}

func TestADaemonThatStaysIsKilled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	knows := filepath.Join(t.TempDir(), "nothing.json")
	if err := os.WriteFile(knows, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	child, err := Spawn(self, nil, []string{standInFlaw + "=stays", standInFile + "=" + knows})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if code, err := child.End(ctx); err == nil || code != -1 {
		t.Errorf("it ended with %d, %v", code, err)
	}
}

func TestSpawnKeepsHostrVariablesAway(t *testing.T) {
	t.Setenv("HOSTR_DAEMON_CONFIG", "elsewhere.json")
	child, err := Spawn("env", nil, []string{"HOSTR_CLI_STORAGE=insecure-file"})
	if err != nil {
		t.Skipf("no env command here: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if code, err := child.End(ctx); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	var hostr []string
	for _, line := range child.Stray() {
		if strings.HasPrefix(line, "HOSTR_") {
			hostr = append(hostr, line)
		}
	}
	if !slices.Equal(hostr, []string{"HOSTR_CLI_STORAGE=insecure-file"}) {
		t.Errorf("the child's environment holds %q", hostr)
	}
}

func TestLongFramesAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", shownFrame+1)
	for _, test := range []struct {
		raw, quiet bool
		text, want string
	}{
		{text: "short", want: "short (3ms)"},
		{text: long, want: long[:shownFrame-2] + " … (421 bytes, 3ms)"},
		{text: long, raw: true, want: long + " (3ms)"},
		{text: "short", quiet: true},
		{text: "short", quiet: true, raw: true, want: "short (3ms)"},
	} {
		var out bytes.Buffer
		paper := &Paper{out: &out, width: 1000}
		(&talk{paper: paper, raw: test.raw, quiet: test.quiet}).showAnswer(test.text, "3ms")
		if got := strings.TrimSpace(strings.TrimPrefix(out.String(), "  ← ")); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

func TestPriceLine(t *testing.T) {
	t.Parallel()
	price := func(value, units, denomination string, decimals int, frequency string) SummaryPrice {
		var p SummaryPrice
		p.Amount.Value, p.Amount.SmallestUnitValue, p.Amount.Denomination, p.Amount.Decimals = value, units, denomination, decimals
		p.Frequency = frequency
		return p
	}
	for want, prices := range map[string][]SummaryPrice{
		"0.7 BTC to buy it":     {price("0.70000000", "70000000", "BTC", 8, "")},
		"167,000 sats a day":    {price("0.00167000", "167000", "BTC", 8, "daily")},
		"465,000 USD to buy it": {price("465000.000000", "465000000000", "USD", 6, "")},
		"38.5 USD a day or 228 USD a week": {
			price("38.500000", "38500000", "USD", 6, "daily"), price("228.000000", "228000000", "USD", 6, "weekly"),
		},
		"1 USD hourly": {price("1", "1", "USD", 0, "hourly")},
		"":             nil,
	} {
		if got := priceLine(Summary{Prices: prices}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                    {""},
		"short":               {"short"},
		"one two three":       {"one two", "three"},
		"one two  three":      {"one two", "three"},
		"abcdefghijklmnop":    {"abcdefghij", "klmnop"},
		`{"a":1,"b":2,"c":3}`: {`{"a":1,`, `"b":2,"c":`, `3}`},
		"two\nlines":          {"two", "lines"},
		"tab\there":           {"tab·here"},
		"ärgerlich ärger":     {"ärgerlich", "ärger"},
		"exactly10!":          {"exactly10!"},
		"exactly10! and":      {"exactly10!", "and"},
	} {
		if got := wrap(text, 10); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
