package market

import "strconv"

// committedFields are the keys of an order's content that its commit hash covers.
var committedFields = []string{"amount", "end", "quantity", "recipient", "start"}

// CommitHash returns the hash of the terms (spec 50 §4), 64 lower-case hex
// digits. It is the same for every version of a trade with the same terms,
// whatever the stage, the proof and the tags.
func (c OrderContent) CommitHash() string { return sha256Hex(c.commitTerms()) }

// commitTerms is the hashed text: the terms that are present, keys sorted.
func (c OrderContent) commitTerms() string {
	text := []byte{'{'}
	if c.Amount != nil {
		text = append(appendAmount(append(text, `"amount":`...), *c.Amount), ',')
	}
	if c.End != nil {
		text = append(appendDate(append(text, `"end":`...), *c.End), ',')
	}
	text = strconv.AppendInt(append(text, `"quantity":`...), c.Quantity, 10)
	if c.Recipient != "" {
		text = appendQuoted(append(text, `,"recipient":`...), c.Recipient)
	}
	if c.Start != nil {
		text = appendDate(append(text, `,"start":`...), *c.Start)
	}
	return string(append(text, '}'))
}
