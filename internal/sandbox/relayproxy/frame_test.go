package relayproxy

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestReadHead(t *testing.T) {
	t.Parallel()
	for frame, want := range map[string]head{
		`["REQ","a",{}]`:                 {"REQ", "a"},
		" [ \"EVENT\" ,\n {\"id\":1} ] ": {"EVENT", ""},
		`["EVENT","sub \"x\" é",{`:       {"EVENT", `sub "x" é`},
		`["CLOSE","a"]`:                  {"CLOSE", "a"},
		`["EOSE"]`:                       {"EOSE", ""},
		`["OK"`:                          {"OK", ""},
		`[17,"a"]`:                       {},
		`{"REQ":"a"}`:                    {},
		`["REQ`:                          {},
		`["\ud800","a"]`:                 {"\ufffd", "a"},
		`["REQ" "a"]`:                    {"REQ", ""},
		`[`:                              {},
		``:                               {},
	} {
		if got := readHead([]byte(frame)); got != want {
			t.Errorf("%s: %+v, want %+v", frame, got, want)
		}
	}
}

// FuzzReadHead compares with the JSON decoder wherever the frame is whole.
func FuzzReadHead(f *testing.F) {
	for _, seed := range []string{`["REQ","a",{}]`, `["EVENT","x`, ` [ "OK" , "\\\"" , true ]`, `[[]]`, `["a\`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		got := readHead(frame)
		var elements []json.RawMessage
		if json.Unmarshal(frame, &elements) != nil {
			return
		}
		text := func(i int) (value string) {
			if i < len(elements) && elements[i][0] == '"' {
				_ = json.Unmarshal(elements[i], &value)
			}
			return value
		}
		want := head{label: text(0)}
		if want.label != "" {
			want.second = text(1)
		}
		if got != want {
			t.Errorf("%q: %+v, want %+v", frame, got, want)
		}
	})
}

func TestFaultsConcern(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults Faults
		want   occasion
	}{
		"noEose":            {Faults{NoEOSE: true}, onRequest},
		"closed":            {Faults{Closed: "error: x"}, onRequest},
		"notice":            {Faults{Notice: "x"}, onRequest},
		"garbage":           {Faults{Garbage: true}, onRequest},
		"oversizedBytes":    {Faults{OversizedBytes: 1}, onRequest},
		"foreign":           {Faults{Foreign: true}, onRequest},
		"forged":            {Faults{Forged: true}, onRequest},
		"duplicates":        {Faults{Duplicates: 1}, onRequest},
		"dropOnRequest":     {Faults{DropOnRequest: true}, onRequest},
		"dropAfterEvents":   {Faults{DropAfterEvents: 1}, onRequest},
		"refuseEvents":      {Faults{RefuseEvents: "x"}, onEvent},
		"noOk":              {Faults{NoOK: true}, onEvent},
		"dropBeforeOk":      {Faults{DropBeforeOK: true}, onEvent},
		"noChallenge":       {Faults{NoChallenge: true}, onHandshake},
		"handshakeStatus":   {Faults{HandshakeStatus: 503}, onHandshake},
		"refuseConnections": {Faults{RefuseConnections: true}, onAccept},
	} {
		for _, what := range []occasion{onAccept, onHandshake, onRequest, onEvent} {
			if got := c.faults.concern(what); got != (what == c.want) {
				t.Errorf("%s at occasion %d: %t", name, what, got)
			}
		}
		text, err := json.Marshal(c.faults)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil || len(fields) != 1 || fields[name] == nil {
			t.Errorf("%s is written as %s", name, text)
		}
	}
}
