package input

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/fault"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ value, want, problem string }{
		{`" Lisbon "`, "Lisbon", ""},
		{`"Lisbon \u00e9\ud83c\udfe0"`, "Lisbon é🏠", ""},
		{`""`, "", ""},
		{`" \t\n "`, "", ""},
		{`null`, "", ""},
		{`5`, "5", ""},
		{`-7`, "-7", ""},
		{`12.50`, "12.5", ""},
		{`5.0`, "5.0", ""},
		{`1e3`, "1000.0", ""},
		{`true`, "true", ""},
		{`false`, "false", ""},
		{"\"a\xffb\"", "a\uFFFDb", ""},
		{`[]`, "", "invalid_input p type"},
		{`["a"]`, "", "invalid_input p type"},
		{`{}`, "", "invalid_input p type"},
	} {
		r, p := property(test.value)
		if got := p.Text(); got != test.want || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %q, %q", test.value, got, problemOf(r.Err()))
		}
	}
}

func TestRequiredText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ value, want, problem string }{
		{`"x"`, "x", ""},
		{`0`, "0", ""},
		{`null`, "", "invalid_input p missing"},
		{`"  "`, "", "invalid_input p missing"},
		{`{}`, "", "invalid_input p type"},
	} {
		r, p := property(test.value)
		if got := p.Required().Text(); got != test.want || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %q, %q", test.value, got, problemOf(r.Err()))
		}
	}
}

func TestWord(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ value, want, problem string }{
		{`null`, "all", ""},
		{`""`, "all", ""},
		{`" swap_in "`, "swap_in", ""},
		{`"swap_out"`, "swap_out", ""},
		{`"SWAP_IN"`, "all", "invalid_input p enum"},
		{`"swaps"`, "all", "invalid_input p enum"},
		{`1`, "all", "invalid_input p enum"},
		{`["swap_in"]`, "all", "invalid_input p type"},
	} {
		r, p := property(test.value)
		if got := p.WordOr("all", "all", "swap_in", "swap_out"); got != test.want || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %q, %q", test.value, got, problemOf(r.Err()))
		}
	}
	r, p := property(`" Rent "`)
	if got := p.Lower().Code(fault.InvalidRentOrBuy).Word("rent", "buy"); got != "rent" || r.Err() != nil {
		t.Errorf("rentOrBuy is %q, %v", got, r.Err())
	}
	r, p = property(`"lease"`)
	p.Lower().Code(fault.InvalidRentOrBuy).Word("rent", "buy")
	if problemOf(r.Err()) != "invalid_rent_or_buy p enum" || fault.From(r.Err()).Hint != "rent, buy" {
		t.Errorf("the error is %+v", r.Err())
	}
}

func TestBool(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value   string
		want    bool
		problem string
	}{
		{`true`, true, ""},
		{`false`, false, ""},
		{`" TRUE "`, true, ""},
		{`"Yes"`, true, ""},
		{`"1"`, true, ""},
		{`1`, true, ""},
		{`"False"`, false, ""},
		{`"no"`, false, ""},
		{`"0"`, false, ""},
		{`0`, false, ""},
		{`null`, true, ""},
		{`""`, true, "invalid_input p type"},
		{`"off"`, true, "invalid_input p type"},
		{`"fasle"`, true, "invalid_input p type"},
		{`2`, true, "invalid_input p type"},
		{`0.0`, true, "invalid_input p type"},
		{`[false]`, true, "invalid_input p type"},
		{`{}`, true, "invalid_input p type"},
	} {
		r, p := property(test.value)
		if got := p.BoolOr(true); got != test.want || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %v, %q", test.value, got, problemOf(r.Err()))
		}
	}
	_, p := property(`null`)
	if p.OptionalBool() != nil {
		t.Error("an absent boolean has a value")
	}
}

func TestTextList(t *testing.T) {
	t.Parallel()
	const anchor = "30402:79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798:"
	for _, test := range []struct {
		value   string
		want    []string
		problem string
	}{
		{`[" wifi ","","kitchen"]`, []string{"wifi", "kitchen"}, ""},
		{`"pool,gym"`, []string{"pool", "gym"}, ""},
		{`" pool , ,gym, "`, []string{"pool", "gym"}, ""},
		{`"pool"`, []string{"pool"}, ""},
		{`["a,b"]`, []string{"a,b"}, ""},
		{`[null,"a",5,true]`, []string{"a", "5", "true"}, ""},
		{`5`, []string{"5"}, ""},
		{`null`, nil, ""},
		{`""`, nil, ""},
		{`","`, nil, ""},
		{`[]`, nil, ""},
		{`[null]`, nil, ""},
		{`{}`, nil, "invalid_input p type"},
		{`["a",["b"]]`, []string{"a"}, "invalid_input p[1] type"},
		{`[{"a":1},"b"]`, []string{"b"}, "invalid_input p[0] type"},
		{`"` + anchor + `a, b"`, []string{anchor + "a", "b"}, ""}, // no list of anchors
	} {
		r, p := property(test.value)
		got := p.TextList()
		if diff := cmp.Diff(test.want, got); diff != "" || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %q, %q", test.value, got, problemOf(r.Err()))
		}
	}
}

// The identifier of an anchor may hold commas.
func TestAnchorTextsAtCommas(t *testing.T) {
	t.Parallel()
	const anchor = "30402:79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798:"
	const naddr = "naddr1qvzqqqrkcgpzq7d7vel0nh9m4326qc54e6rskpczn07dktww9rv4nu5ptvt0s9ucqq9kwctjv3jkuttjdahk6v0uw5y"
	for _, test := range []struct {
		value   string
		want    []string
		problem string
	}{
		{`"My garden room"`, []string{"My garden room"}, ""},
		{`"a room, with a view"`, []string{"a room", "with a view"}, ""},
		{`" , ,"`, nil, ""},
		{`"` + anchor + `a, b"`, []string{anchor + "a, b"}, ""},
		{`"` + anchor + `a,,b,"`, []string{anchor + "a,,b"}, ""},
		{`"` + anchor + `a,` + anchor + `b"`, []string{anchor + "a", anchor + "b"}, ""},
		{`"` + anchor + `a,b , ` + anchor + `c,` + naddr + `"`, []string{anchor + "a,b", anchor + "c", naddr}, ""},
		{`"` + naddr + `,x"`, []string{naddr, "x"}, ""},
		{`"x,` + anchor + `a"`, []string{"x", anchor + "a"}, ""},
		{`", ` + anchor + `a, ,` + naddr + ` , b,c,"`, []string{anchor + "a", naddr, "b", "c"}, ""},
	} {
		r, p := property(test.value)
		got := p.AnchorTexts()
		if diff := cmp.Diff(test.want, got); diff != "" || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %q, %q", test.value, got, problemOf(r.Err()))
		}
	}
}

// A list that no caller means costs no more than telling so. The texts are as long as
// a frame lets them be: with work for every pair of pieces they would take hours.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	const anchor = "30402:79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798:"
	listOf := func(item string, count int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", count), ",") + "]"
	}
	commas := func(item string, count int) string { return `"` + strings.Repeat(item+",", count) + `"` }
	for name, test := range map[string]struct{ value, texts, anchors, pubkeys string }{
		"an anchor and commas": {`"` + anchor + strings.Repeat(",x", 500_000) + `"`, "p range", "p[0] range", "p range"},
		"commas":               {commas("x", 500_000), "p range", "p range", "p range"},
		"only commas":          {commas("", 500_000), "", "", ""},
		"a list":               {listOf(`"x"`, 500_000), "p range", "p range", "p range"},
		"a list of lists":      {listOf(`[]`, 500_000), "p[0] type", "p[0] type", "p[0] type"},
		"a list of nothing":    {listOf(`null`, 500_000), "", "", ""},
		"as many as may be":    {listOf(`"`+pubkeyA+`"`, 200), "", "", ""},
		"one more":             {listOf(`"`+pubkeyA+`"`, 201), "", "p range", "p range"},
		"long":                 {`["` + strings.Repeat("x", maxItemBytes+1) + `"]`, "p[0] range", "p[0] range", "p[0] range"},
		"not too long":         {`["` + strings.Repeat("x", maxItemBytes) + `"]`, "", "", "p[0] format"},
	} {
		for _, reading := range []struct {
			want string
			read func(Property)
		}{
			{test.texts, func(p Property) { p.TextList() }},
			{test.anchors, func(p Property) { p.AnchorTexts() }},
			{test.pubkeys, func(p Property) { p.Pubkeys() }},
		} {
			r, p := property(test.value)
			reading.read(p)
			if got := strings.TrimPrefix(problemOf(r.Err()), "invalid_input "); got != reading.want {
				t.Errorf("%s: %q, want %q", name, got, reading.want)
			}
		}
	}
}

func TestListTriesTheAliasWhenEmpty(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		raw     string
		want    []string
		problem string
	}{
		{`{"anchors":[],"anchor":"x"}`, []string{"x"}, ""},
		{`{"anchors":"","anchor":"x"}`, []string{"x"}, ""},
		{`{"anchors":[null," "],"anchor":"x"}`, []string{"x"}, ""},
		{`{"anchors":["y"],"anchor":"x"}`, []string{"y"}, ""},
		{`{"anchors":[[]],"anchor":"x"}`, nil, "invalid_input anchors[0] type"},
		{`{"anchors":[],"anchor":""}`, nil, "invalid_input anchors missing"},
		{`{}`, nil, "invalid_input anchors missing"},
	} {
		r := NewReader([]byte(test.raw))
		got := r.Property("anchors", "anchor").Required().AnchorTexts()
		if diff := cmp.Diff(test.want, got); diff != "" || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %q, %q", test.raw, got, problemOf(r.Err()))
		}
	}
}

func TestObjectKeepsItsOrder(t *testing.T) {
	t.Parallel()
	r, p := property(`{"b":1,"a":{"z":[]},"b":"two","é\n":null}`)
	object := p.Object()
	encoded, err := object.MarshalJSON()
	if want := `{"b":"two","a":{"z":[]},"é\n":null}`; err != nil || string(encoded) != want || r.Err() != nil {
		t.Errorf("the object is %s, %v, %v", encoded, err, r.Err())
	}
	if value, found := object.Get("é\n"); !found || string(value) != "null" || object.Len() != 3 {
		t.Errorf("the null member is %s, %v", value, found)
	}
	if _, found := object.Get("z"); found {
		t.Error("a key of an inner object was found")
	}
	for value, problem := range map[string]string{
		`null`: "", `[]`: "invalid_input p type", `"{}"`: "invalid_input p type", `1`: "invalid_input p type",
	} {
		r, p := property(value)
		if object := p.Object(); object.Len() != 0 || problemOf(r.Err()) != problem {
			t.Errorf("%s gave %q", value, problemOf(r.Err()))
		}
	}
	var again Object
	if err := again.UnmarshalJSON(encoded); err != nil || again.Members()[1].Name != "a" {
		t.Errorf("read again: %v, %v", again, err)
	}
	if err := again.UnmarshalJSON([]byte(`[]`)); err == nil {
		t.Error("a list was read as an object")
	}
}
