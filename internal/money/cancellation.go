package money

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"hostr-daemon/internal/fault"
)

// CancellationRule is the share refunded when the buyer cancels early enough
// (spec 41 §7). It is stored and shown; nothing computes a refund from it.
type CancellationRule struct {
	// SecondsBeforeStart is how long before the stay begins; nil when not set.
	SecondsBeforeStart *int64 `json:"secondsBeforeStart,omitempty"`
	// SecondsAfterOrder is how long after the order was made; nil when not set.
	SecondsAfterOrder *int64   `json:"secondsAfterOrder,omitempty"`
	RefundFraction    Fraction `json:"refundFraction"`
}

const (
	labelRefundFraction     = "refundFraction"
	labelSecondsBeforeStart = "secondsBeforeStart"
	labelSecondsAfterOrder  = "secondsAfterOrder"
)

// Check returns invalid_cancellation_policy when neither time is given or one
// is negative.
func (r CancellationRule) Check() error {
	if r.SecondsBeforeStart == nil && r.SecondsAfterOrder == nil {
		return fault.New(fault.InvalidCancellationPolicy,
			"a cancellation rule needs secondsBeforeStart, secondsAfterOrder or both")
	}
	for _, seconds := range [...]*int64{r.SecondsBeforeStart, r.SecondsAfterOrder} {
		if seconds != nil && *seconds < 0 {
			return fault.New(fault.InvalidCancellationPolicy,
				"%d seconds: the times of a cancellation rule cannot be negative", *seconds)
		}
	}
	return nil
}

// Labels returns the labelled pairs that follow the name of a
// cancellationPolicy tag (spec 40 §1.5).
func (r CancellationRule) Labels() []string {
	labels := []string{labelRefundFraction, r.RefundFraction.String()}
	if r.SecondsBeforeStart != nil {
		labels = append(labels, labelSecondsBeforeStart, strconv.FormatInt(*r.SecondsBeforeStart, 10))
	}
	if r.SecondsAfterOrder != nil {
		labels = append(labels, labelSecondsAfterOrder, strconv.FormatInt(*r.SecondsAfterOrder, 10))
	}
	return labels
}

// CancellationRuleOf reads labelled pairs in any order; of a repeated label the
// last counts, unknown labels and an odd last element are ignored. It reports
// false when they are no rule.
func CancellationRuleOf(labels []string) (CancellationRule, bool) {
	var fractionText string
	var rule CancellationRule
	for ; len(labels) >= 2; labels = labels[2:] {
		switch value := labels[1]; labels[0] {
		case labelRefundFraction:
			fractionText = value
		case labelSecondsBeforeStart:
			rule.SecondsBeforeStart = parseSeconds(value)
		case labelSecondsAfterOrder:
			rule.SecondsAfterOrder = parseSeconds(value)
		}
	}
	fraction, err := ParseFraction(fractionText)
	if err != nil {
		return CancellationRule{}, false
	}
	rule.RefundFraction = fraction
	return rule, rule.Check() == nil
}

// Fraction is a number from 0 to 1, kept as the shortest decimal text that
// reads back as the same double, which is how every Hostr client writes it.
// The zero Fraction is 0.
type Fraction struct{ text string }

var fractionForm = regexp.MustCompile(`^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$`)

// ParseFraction reads a number from 0 to 1. Anything else, NaN included, is
// invalid_cancellation_policy.
func ParseFraction(text string) (Fraction, error) {
	trimmed := strings.TrimSpace(text)
	double, err := strconv.ParseFloat(trimmed, 64)
	if err != nil || !fractionForm.MatchString(trimmed) || double < 0 || double > 1 {
		return Fraction{}, fault.New(fault.InvalidCancellationPolicy, "%.40q is not a number from 0 to 1", text).
			WithHint("0.5 refunds half, 1 refunds all")
	}
	return Fraction{text: strconv.FormatFloat(math.Abs(double), 'f', -1, 64)}, nil
}

// String returns the decimal text of tags, which always shows a fraction: 1.0.
func (f Fraction) String() string {
	if digits := f.digits(); strings.Contains(digits, ".") {
		return digits
	}
	return f.digits() + ".0"
}

// MarshalJSON writes a JSON number: 1, 0.5.
func (f Fraction) MarshalJSON() ([]byte, error) { return []byte(f.digits()), nil }

// UnmarshalJSON reads a JSON number or text from 0 to 1.
func (f *Fraction) UnmarshalJSON(data []byte) error {
	text, isText := jsonText(data)
	if !isText {
		text = string(data)
	}
	fraction, err := ParseFraction(text)
	if err != nil {
		return err
	}
	*f = fraction
	return nil
}

func (f Fraction) digits() string {
	if f.text == "" {
		return "0"
	}
	return f.text
}

// parseSeconds returns nil for text that is no integer.
func parseSeconds(text string) *int64 {
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return nil
	}
	return &seconds
}
