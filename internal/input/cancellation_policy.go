package input

import (
	"github.com/tidwall/gjson"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/money"
)

// CancellationPolicies reads a list of refund rules, or one of them (spec 41 §7).
// Null items are dropped; every problem is an invalid_cancellation_policy of its
// item.
func (p Property) CancellationPolicies() []money.CancellationRule {
	p = p.as(fault.InvalidCancellationPolicy)
	var rules []money.CancellationRule
	for _, reader := range p.objects() {
		if rule, ok := readCancellationRule(reader); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

func readCancellationRule(r *Reader) (money.CancellationRule, bool) {
	const hint = `{"secondsBeforeStart":86400,"refundFraction":1}`
	// The path is that of the item: spec 30 §9.3 names no deeper one.
	whole := Property{reader: r, path: r.path}.as(fault.InvalidCancellationPolicy)
	before, beforeOK := seconds(r.values["secondsBeforeStart"])
	after, afterOK := seconds(r.values["secondsAfterOrder"])
	fraction, fractionOK := textOf(r.values["refundFraction"])
	share, err := money.ParseFraction(fraction)
	switch {
	case !beforeOK || !afterOK:
		whole.fail(ReasonRange, hint, "needs whole seconds, none of them negative")
	case before == nil && after == nil:
		whole.fail(ReasonMissing, hint, "needs secondsBeforeStart, secondsAfterOrder, or both")
	case !fractionOK || err != nil:
		whole.fail(ReasonRange, hint, "needs a refundFraction from 0 to 1")
	default:
		return money.CancellationRule{SecondsBeforeStart: before, SecondsAfterOrder: after, RefundFraction: share}, true
	}
	return money.CancellationRule{}, false
}

// seconds reads a whole number that is not negative; absent is nil and no fault.
func seconds(value gjson.Result) (*int64, bool) {
	if value.Type == gjson.Null {
		return nil, true
	}
	number, ok := wholeNumber(value)
	if !ok || number.tooLarge || !number.IsInt64() || number.Sign() < 0 {
		return nil, false
	}
	count := number.Int64()
	return &count, true
}
