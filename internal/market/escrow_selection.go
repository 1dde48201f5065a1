package market

import (
	"errors"
	"fmt"

	"github.com/nbd-wtf/go-nostr"
)

// EscrowSelection says which escrow a guest pays through, read from an event of kind
// 30302 that travels in a private message (spec 70 §6). Nothing in it is verified: the
// selection is unsigned, and the two events it holds have to be verified before
// anybody relies on them.
type EscrowSelection struct {
	// Event is the event as found; it must not be changed.
	Event *nostr.Event
	// TradeID is the value of the first d tag, Listing that of the first a tag, "" when
	// there is none. The trade that counts is the one of the message's conversation tag.
	TradeID, Listing string
	// Service and SellerMethods are the JSON texts of the escrow's offer (kind 30303)
	// and of the seller's configuration (kind 17388) as they stand.
	Service, SellerMethods string
	// EscrowService is what Service says.
	EscrowService EscrowService
	// SellerConfiguration is the event of SellerMethods.
	SellerConfiguration *nostr.Event
}

// ErrNotEscrowSelection is in the error of an event that selects no escrow that can be
// read.
var ErrNotEscrowSelection = errors.New("the event is not an escrow selection")

// DecodeEscrowSelection reads a selection. Without trade id, or with an embedded event
// that cannot be read, it is an ErrNotEscrowSelection.
func DecodeEscrowSelection(event *nostr.Event) (EscrowSelection, error) {
	if event == nil || event.Kind != KindEscrowServiceSelected {
		return EscrowSelection{}, ErrNotEscrowSelection
	}
	selection, err := decodeEscrowSelection(event)
	if err != nil {
		return EscrowSelection{}, fmt.Errorf("%w: %w", ErrNotEscrowSelection, err)
	}
	return selection, nil
}

func decodeEscrowSelection(event *nostr.Event) (EscrowSelection, error) {
	tradeID, ok := firstValue(event.Tags, "d")
	if !ok {
		return EscrowSelection{}, errors.New("it has no d tag")
	}
	fields, err := readFields(event.Content)
	if err != nil {
		return EscrowSelection{}, err
	}
	selection := EscrowSelection{
		Event: event, TradeID: tradeID, Service: fields.text("service"), SellerMethods: fields.text("sellerMethods"),
	}
	if fields.problem != nil {
		return EscrowSelection{}, fields.problem
	}
	selection.Listing, _ = firstValue(event.Tags, "a")
	service, err := decodeKind(selection.Service, KindEscrowService)
	if err != nil {
		return EscrowSelection{}, fmt.Errorf("its service: %w", err)
	}
	if selection.EscrowService, err = DecodeEscrowService(service); err != nil {
		return EscrowSelection{}, err
	}
	if selection.SellerConfiguration, err = decodeKind(selection.SellerMethods, KindSellerConfiguration); err != nil {
		return EscrowSelection{}, fmt.Errorf("its sellerMethods: %w", err)
	}
	return selection, nil
}
