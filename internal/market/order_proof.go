package market

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nbd-wtf/go-nostr"
)

// OrderProof shows that a committed order is paid for (spec 50 §3.3).
type OrderProof struct {
	// Listing is the listing as it was at the commit. It is the sender's word: its
	// id and signature are not checked here.
	Listing *nostr.Event
	// Payment and Escrow are nil when the proof has none.
	Payment *PaymentProof
	Escrow  *EscrowContext
}

// PaymentMethod is the way an order was paid.
type PaymentMethod string

// The ways to pay.
const (
	// PaymentEVM is a deposit in an escrow contract.
	PaymentEVM PaymentMethod = "evm"
	// PaymentZap is a Lightning payment with a receipt (NIP-57).
	PaymentZap PaymentMethod = "zap"
)

// PaymentProof names one payment.
type PaymentProof struct {
	Method PaymentMethod
	// TxHash is the transaction of an EVM payment.
	TxHash string
	// ZapReceipt is the JSON text of the receipt, RecipientProfile the profile
	// (kind 0) of whom a zap paid.
	ZapReceipt       string
	RecipientProfile *nostr.Event
}

// EscrowContext are the two events that an escrow payment was made under, as
// JSON texts.
type EscrowContext struct {
	// Service is the escrow's offer, kind 30303.
	Service string
	// SellerMethod is the seller's configuration, kind 17388.
	SellerMethod string
}

// ServiceEvent reads the escrow's offer. Its signature is not checked.
func (c EscrowContext) ServiceEvent() (*nostr.Event, error) {
	return decodeKind(c.Service, KindEscrowService)
}

// SellerMethodEvent reads the seller's configuration. Its signature is not checked.
func (c EscrowContext) SellerMethodEvent() (*nostr.Event, error) {
	return decodeKind(c.SellerMethod, KindSellerConfiguration)
}

// EscrowPubkey returns the escrow that the content of the service event names
// (spec 70 §3), which need not be its author; "" when it is unreadable.
func (c EscrowContext) EscrowPubkey() string {
	service, err := c.ServiceEvent()
	if err != nil {
		return ""
	}
	content, err := readFields(service.Content)
	if err != nil {
		return ""
	}
	return content.optionalText("pubkey")
}

func decodeKind(text string, kind int) (*nostr.Event, error) {
	event, err := DecodeEmbeddedEvent(text)
	if err != nil {
		return nil, err
	}
	if event.Kind != kind {
		return nil, fmt.Errorf("the event is of kind %d instead of %d", event.Kind, kind)
	}
	return event, nil
}

func readProof(fields *fieldReader) (*OrderProof, error) {
	proof := &OrderProof{Listing: fields.event("listing")}
	payment := fields.object("paymentProof")
	if fields.problem != nil {
		return nil, fields.problem
	}
	if proof.Listing == nil {
		return nil, errors.New("its listing is missing")
	}
	if payment == nil {
		return proof, nil // an escrow is read only beside a payment
	}
	var err error
	if proof.Payment, err = readPayment(payment); err != nil {
		return nil, err
	}
	if escrow := fields.object("escrow"); escrow != nil {
		proof.Escrow = &EscrowContext{Service: escrow.text("escrowService"), SellerMethod: escrow.text("sellerEscrowMethod")}
		return proof, escrow.problem
	}
	return proof, fields.problem
}

func readPayment(fields *fieldReader) (*PaymentProof, error) {
	payment := &PaymentProof{Method: PaymentMethod(strings.ToLower(fields.text("method")))}
	params := fields.object("params")
	if fields.problem != nil {
		return nil, fields.problem
	}
	if params == nil {
		return nil, errors.New("its params are missing")
	}
	switch payment.Method {
	case PaymentEVM:
		payment.TxHash = params.text("txHash")
	case PaymentZap:
		payment.ZapReceipt = params.text("receipt")
		if payment.RecipientProfile = params.event("recipientProfile"); payment.RecipientProfile == nil {
			params.fail("recipientProfile", "is missing")
		}
	default:
		return nil, fmt.Errorf("its payment method %.40q is unknown", payment.Method)
	}
	return payment, params.problem
}

func (p *OrderProof) appendTo(text []byte) []byte {
	if p == nil {
		return append(text, "null"...)
	}
	text = appendEvent(append(text, `{"listing":`...), p.Listing)
	text = p.Payment.appendTo(append(text, `,"paymentProof":`...))
	if p.Escrow != nil {
		text = appendQuoted(append(text, `,"escrow":{"escrowService":`...), p.Escrow.Service)
		text = appendQuoted(append(text, `,"sellerEscrowMethod":`...), p.Escrow.SellerMethod)
		text = append(text, '}')
	}
	return append(text, '}')
}

func (p *PaymentProof) appendTo(text []byte) []byte {
	switch {
	case p == nil:
		return append(text, "null"...)
	case p.Method == PaymentZap:
		text = appendQuoted(append(text, `{"method":"zap","params":{"receipt":`...), p.ZapReceipt)
		text = appendEvent(append(text, `,"recipientProfile":`...), p.RecipientProfile)
	default:
		text = appendQuoted(append(text, `{"method":"evm","params":{"txHash":`...), p.TxHash)
	}
	return append(text, `}}`...)
}
