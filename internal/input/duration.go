package input

import "hostr-daemon/internal/money"

// Duration reads an ISO 8601 duration, kept as text (spec 41 §8); absent is empty.
func (p Property) Duration() string {
	text, ok := p.text()
	if !ok || text == "" {
		return ""
	}
	if !money.ValidDuration(text) {
		p.fail(ReasonFormat, "P2D for two days, P1W for a week, P1M for a month", "must be an ISO 8601 duration")
		return ""
	}
	return text
}
