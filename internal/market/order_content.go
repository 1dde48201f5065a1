package market

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/money"
)

// OrderContent is the content of an order (spec 50 §3.2).
type OrderContent struct {
	// Start and End are instants in UTC as given, precise to the microsecond and
	// in no certain order; nil when absent.
	Start, End *time.Time
	Proof      *OrderProof
	Stage      Stage
	Quantity   int64
	Amount     *money.Amount
	// Recipient is the pubkey of the buyer's trade key; "" when absent.
	Recipient string
	// CommitAuthorization is the seller's signature over the terms, unchecked: see
	// Order.CheckCommitAuthorization.
	CommitAuthorization *nostr.Event
}

// decodeOrderContent reads the content of an order. Null counts as absent. One
// unreadable value is an error for the whole.
func decodeOrderContent(text string) (OrderContent, error) {
	fields, err := readFields(text)
	if err != nil {
		return OrderContent{}, err
	}
	content := OrderContent{
		Start:               fields.date("start"),
		End:                 fields.date("end"),
		Stage:               Stage(fields.text("stage")),
		Quantity:            fields.integerOr("quantity", 1),
		Amount:              fields.amount("amount"),
		Recipient:           fields.optionalText("recipient"),
		CommitAuthorization: fields.event("commitAuthorization"),
	}
	proof := fields.object("proof")
	switch {
	case fields.problem != nil:
		return OrderContent{}, fields.problem
	case !content.Stage.known():
		return OrderContent{}, fmt.Errorf("its stage %.40q is unknown", content.Stage)
	}
	if proof != nil {
		if content.Proof, err = readProof(proof); err != nil {
			return OrderContent{}, fmt.Errorf("its proof cannot be read: %w", err)
		}
	}
	if content.CommitAuthorization != nil {
		if _, err := DecodeCommitAuthorization(content.CommitAuthorization); err != nil {
			return OrderContent{}, fmt.Errorf("its commitAuthorization cannot be read: %w", err)
		}
	}
	return content, nil
}

// Encode writes the content as JSON, the same bytes for equal content.
func (c OrderContent) Encode() string {
	text := []byte{'{'}
	if c.Start != nil {
		text = append(appendDate(append(text, `"start":`...), *c.Start), ',')
	}
	if c.End != nil {
		text = append(appendDate(append(text, `"end":`...), *c.End), ',')
	}
	text = c.Proof.appendTo(append(text, `"proof":`...))
	text = appendQuoted(append(text, `,"stage":`...), string(c.Stage))
	text = strconv.AppendInt(append(text, `,"quantity":`...), c.Quantity, 10)
	if c.Amount != nil {
		text = appendAmount(append(text, `,"amount":`...), *c.Amount)
	}
	if c.Recipient != "" {
		text = appendQuoted(append(text, `,"recipient":`...), c.Recipient)
	}
	if c.CommitAuthorization != nil {
		text = appendEvent(append(text, `,"commitAuthorization":`...), c.CommitAuthorization)
	}
	return string(append(text, '}'))
}

// date reads an instant; nil when absent.
func (r *fieldReader) date(key string) *time.Time {
	if !r.has(key) {
		return nil
	}
	instant, err := ParseInstant(r.text(key))
	if err != nil {
		r.fail(key, err.Error())
		return nil
	}
	return &instant
}

// amount reads an amount; nil when absent.
func (r *fieldReader) amount(key string) *money.Amount {
	if !r.has(key) {
		return nil
	}
	var amount money.Amount
	if err := amount.UnmarshalJSON(r.raw[key]); err != nil {
		r.fail(key, "is no amount")
		return nil
	}
	return &amount
}

func appendDate(text []byte, instant time.Time) []byte {
	return appendQuoted(text, formatInstant(instant))
}

// appendAmount does what money.Amount.MarshalJSON does, without the escapes that
// encoding/json cannot be told to leave out: the text is hashed.
func appendAmount(text []byte, amount money.Amount) []byte {
	text = appendQuoted(append(text, `{"value":`...), amount.Text())
	text = appendQuoted(append(text, `,"denomination":`...), amount.Denomination)
	return append(strconv.AppendInt(append(text, `,"decimals":`...), int64(amount.Decimals), 10), '}')
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
