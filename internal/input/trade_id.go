package input

import "strings"

// TradeID reads the id of a trade in the escrow contract: 64 hex digits of any
// case, with or without 0x (spec 80 §5.1). It returns lower-case digits without
// 0x; absent is empty.
func (p Property) TradeID() string {
	text, ok := p.text()
	if !ok || text == "" {
		return ""
	}
	id := strings.TrimPrefix(strings.ToLower(text), "0x")
	if !isHex64(id) {
		p.fail(ReasonFormat, "64 hex digits, as in tradeId of hostr.escrow.trades.list", "must be a trade id of 64 hex digits")
		return ""
	}
	return id
}
