package input

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		raw     string
		want    []Image
		problem string
	}{
		{`{"images":["https://a.example/1.png"," https://a.example/2.png "]}`, []Image{{URL: "https://a.example/1.png"}, {URL: "https://a.example/2.png"}}, ""},
		{`{"images":"a.png"}`, []Image{{URL: "a.png"}}, ""},
		{`{"image":{"url":"u","filename":"f","alt":"a","mime":"m"}}`, []Image{{URL: "u", Filename: "f", Alt: "a", MIME: "m"}}, ""},
		{`{"images":[{"dataUri":"data:x","name":"n"},{"data":"QQ=="},{"path":"/p"}]}`, []Image{{DataURL: "data:x", Filename: "n"}, {Base64: "QQ=="}, {Path: "/p"}}, ""},
		{`{"images":[{"dataUrl":"d1","dataUri":"d2","base64":"b1","data":"b2","filename":null,"name":"n"}]}`, []Image{{DataURL: "d1", Base64: "b1", Filename: "n"}}, ""},
		{`{"images":[null,"x"]}`, []Image{{URL: "x"}}, ""},
		{`{"images":[],"image":"x"}`, []Image{{URL: "x"}}, ""},
		{`{"images":[5]}`, []Image{{URL: "5"}}, ""},
		{`{}`, nil, "images_required images missing"},
		{`{"images":[]}`, nil, "images_required images missing"},
		{`{"images":[null]}`, nil, "images_required images missing"},
		{`{"images":["x",{"alt":"nothing to see"}]}`, []Image{{URL: "x"}}, "invalid_image images[1] missing"},
		{`{"images":[" "]}`, nil, "invalid_image images[0] missing"},
		{`{"images":[["x"]]}`, nil, "invalid_image images[0] type"},
		{`{"images":[{"url":{"href":"x"}}]}`, nil, "invalid_input images[0].url type"},
		{`{"images":["x"` + strings.Repeat(`,"x"`, 299) + `]}`, slices.Repeat([]Image{{URL: "x"}}, 300), ""},
		{`{"images":["x"` + strings.Repeat(`,"x"`, 300) + `]}`, nil, "invalid_input images range"},
	} {
		r := NewReader([]byte(test.raw))
		got := r.Property("images", "image").Required().Images()
		if diff := cmp.Diff(test.want, got); diff != "" || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %q %s", test.raw, problemOf(r.Err()), diff)
		}
	}
}

func TestCancellationPolicies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ value, want, problem string }{
		{`[{"secondsBeforeStart":172800,"secondsAfterOrder":3600,"refundFraction":1}]`, `[{"secondsBeforeStart":172800,"secondsAfterOrder":3600,"refundFraction":1}]`, ""},
		{`{"secondsBeforeStart":"86400","refundFraction":"0.5"}`, `[{"secondsBeforeStart":86400,"refundFraction":0.5}]`, ""},
		{`[null,{"secondsAfterOrder":0,"refundFraction":0}]`, `[{"secondsAfterOrder":0,"refundFraction":0}]`, ""},
		{`[]`, `null`, ""},
		{`null`, `null`, ""},
		{`["none"]`, `null`, "invalid_cancellation_policy p[0] type"},
		{`5`, `null`, "invalid_cancellation_policy p[0] type"},
		{`[{"refundFraction":1}]`, `null`, "invalid_cancellation_policy p[0] missing"},
		{`[{"secondsBeforeStart":-1,"refundFraction":1}]`, `null`, "invalid_cancellation_policy p[0] range"},
		{`[{"secondsBeforeStart":1,"secondsAfterOrder":"soon","refundFraction":1}]`, `null`, "invalid_cancellation_policy p[0] range"},
		{`[{"secondsBeforeStart":1e40,"refundFraction":1}]`, `null`, "invalid_cancellation_policy p[0] range"},
		{`[{"secondsBeforeStart":1}]`, `null`, "invalid_cancellation_policy p[0] range"},
		{`[{"secondsBeforeStart":1,"refundFraction":1.5}]`, `null`, "invalid_cancellation_policy p[0] range"},
		{`[{"secondsBeforeStart":1,"refundFraction":"NaN"}]`, `null`, "invalid_cancellation_policy p[0] range"},
		{`[{"secondsBeforeStart":1,"refundFraction":[]}]`, `null`, "invalid_cancellation_policy p[0] range"},
		{`[{"secondsBeforeStart":1,"refundFraction":1},{}]`, `[{"secondsBeforeStart":1,"refundFraction":1}]`, "invalid_cancellation_policy p[1] missing"},
	} {
		r, p := property(test.value)
		encoded, err := json.Marshal(p.CancellationPolicies())
		if err != nil || string(encoded) != test.want || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %s, %q, %v", test.value, encoded, problemOf(r.Err()), err)
		}
	}
}

func TestListingPatchVector(t *testing.T) {
	t.Parallel()
	r := NewReader([]byte(`{"patch":` + string(readVectors(t).Edit) + `}`))
	patch := r.ListingPatch("patch")
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	if *patch.Title != "Garden room with pool" || *patch.Active || *patch.Guests != 3 || patch.Specifications.Members()[1].Name != "pool" {
		t.Errorf("the patch is %+v", patch)
	}
	if !patch.SecurityDeposit.Given || patch.SecurityDeposit.Value != nil || patch.MinPaymentAmount.Given {
		t.Errorf("the deposit is %+v, the least payment %+v", patch.SecurityDeposit, patch.MinPaymentAmount)
	}
	if patch.Images != nil || patch.Prices != nil || patch.Address != nil || patch.Description != nil || patch.CancellationPolicy.Given {
		t.Errorf("what was not named changes: %+v", patch)
	}
}

func TestListingPatch(t *testing.T) {
	t.Parallel()
	r := NewReader([]byte(`{"anchor":"a","dryRun":true,"patch":{
		"title":"  As it is ","description":"","type":" Villa ","images":"https://a.example/1.png",
		"price":{"value":"5","currency":"USD"},"securityDeposit":{"value":"1","currency":"USD"},"minPaymentAmount":null,
		"maxDisputePeriod":null,"cancellationPolicies":null,"minDuration":" P2D ","quantity":"3","active":"no",
		"negotiable":1,"autoAccept":null,"specs":{"pool":true},"max_guests":2,"guests":4,"beds":1.9,
		"address":null,"h3Tags":["1","2"],"h3MaxTags":5,"checkIn":"16:0","dTag":"other"}}`))
	patch := r.ListingPatch("patch")
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	if *patch.Title != "  As it is " || *patch.Description != "" || patch.Type != "villa" || patch.MinDuration != "P2D" {
		t.Errorf("texts: %q %q %q %q", *patch.Title, *patch.Description, patch.Type, patch.MinDuration)
	}
	if len(patch.Images) != 1 || len(patch.Prices) != 1 || patch.SecurityDeposit.Value == nil || !patch.MinPaymentAmount.Given || patch.MinPaymentAmount.Value != nil {
		t.Errorf("images and amounts: %+v", patch)
	}
	if !patch.MaxDisputePeriod.Given || patch.MaxDisputePeriod.Value != nil || !patch.CancellationPolicy.Given || patch.CancellationPolicy.Value != nil {
		t.Errorf("cleared: %+v %+v", patch.MaxDisputePeriod, patch.CancellationPolicy)
	}
	if *patch.Quantity != 3 || *patch.Active || !*patch.Negotiable || patch.AutoAccept != nil || *patch.Guests != 4 || *patch.Beds != 1 || patch.Bedrooms != nil {
		t.Errorf("numbers and booleans: %+v", patch)
	}
	if *patch.Address != "" || len(patch.H3Tags) != 2 || *patch.H3MaxTags != 5 || patch.H3FinestResolution != nil {
		t.Errorf("the move: %+v", patch)
	}
}

func TestListingPatchProblems(t *testing.T) {
	t.Parallel()
	for patch, problem := range map[string]string{
		`{"title":[]}`:                "invalid_input patch.title type",
		`{"type":"castle"}`:           "invalid_listing_type patch.type enum",
		`{"type":""}`:                 "invalid_listing_type patch.type missing",
		`{"images":null}`:             "images_required patch.images missing",
		`{"images":[]}`:               "images_required patch.images missing",
		`{"images":[{}]}`:             "invalid_image patch.images[0] missing",
		`{"prices":null}`:             "price_required patch.prices missing",
		`{"price":[null]}`:            "price_required patch.prices missing",
		`{"prices":[50]}`:             "invalid_price patch.prices[0] type",
		`{"prices":["50"]}`:           "invalid_price patch.prices[0] type",
		`{"securityDeposit":5}`:       "currency_required patch.securityDeposit type",
		`{"securityDeposit":[]}`:      "invalid_amount patch.securityDeposit type",
		`{"maxDisputePeriod":"x"}`:    "invalid_input patch.maxDisputePeriod type",
		`{"quantity":"many"}`:         "invalid_input patch.quantity type",
		`{"active":"off"}`:            "invalid_input patch.active type",
		`{"minDuration":2}`:           "invalid_duration patch.minDuration format",
		`{"minDuration":" "}`:         "invalid_duration patch.minDuration missing",
		`{"address":null}`:            "address_required patch.address missing",
		`{"address":" ","h3Tags":[]}`: "address_required patch.address missing",
		`{"specifications":[]}`:       "invalid_input patch.specifications type",
		`{"cancellationPolicy":[{}]}`: "invalid_cancellation_policy patch.cancellationPolicy[0] missing",
		`{"quantity":1,"unknown":[]}`: "",
		`{}`:                          "",
	} {
		r := NewReader([]byte(`{"patch":` + patch + `}`))
		if r.ListingPatch("patch"); problemOf(r.Err()) != problem {
			t.Errorf("%s is %q", patch, problemOf(r.Err()))
		}
	}
}

// Without a patch object the input itself is the patch (spec 30 §9.2).
func TestListingPatchWithoutPatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ raw, title, problem string }{
		{`{"anchor":"a","title":"New","dryRun":false}`, "New", ""},
		{`{"anchor":"a","patch":null,"title":"New"}`, "New", ""},
		{`{"anchor":"a","patch":"x","title":"New"}`, "New", ""},
		{`{"anchor":"a","patch":{},"title":"Old"}`, "", ""},
		{`{"anchor":"a"}`, "", ""},
		{`{"anchor":"a","quantity":"many"}`, "", "invalid_input quantity type"},
		{`{"anchor":"a","patch":"{\"title\":\"New\"}"}`, "", "invalid_input patch type"},
		{`{"anchor":"a","patch":[{"title":"New"}]}`, "", "invalid_input patch type"},
	} {
		r := NewReader([]byte(test.raw))
		patch := r.ListingPatch("patch")
		title := ""
		if patch.Title != nil {
			title = *patch.Title
		}
		if title != test.title || problemOf(r.Err()) != test.problem {
			t.Errorf("%s gave %q, %q", test.raw, title, problemOf(r.Err()))
		}
	}
}

func TestLargeInput(t *testing.T) {
	t.Parallel()
	base64 := strings.Repeat("QUJD", 1_000_000)
	r := NewReader([]byte(`{"images":[{"base64":"` + base64 + `"}]}`))
	if images := r.Property("images").Images(); r.Err() != nil || len(images) != 1 || images[0].Base64 != base64 {
		t.Errorf("a large image gave %d images, %v", len(images), r.Err())
	}
}
