package market

import "time"

// OrderGroupResult is an order group as results of actions show it (spec 51
// §2.6, spec 40 §14).
type OrderGroupResult struct {
	GroupID       string `json:"groupId"`
	TradeID       string `json:"tradeId"`
	ListingAnchor string `json:"listingAnchor"`
	// ListingTitle is the title of the listing inside the proof.
	ListingTitle string `json:"listingTitle,omitempty"`
	SellerPubkey string `json:"sellerPubkey"`
	// BuyerPubkey and EscrowPubkey are null when unknown.
	BuyerPubkey  *string `json:"buyerPubkey"`
	EscrowPubkey *string `json:"escrowPubkey"`
	Stage        Stage   `json:"stage"`
	Cancelled    bool    `json:"cancelled"`
	Active       bool    `json:"active"`
	// Confirmed is the seller's own commit, not the outcome of a verification.
	Confirmed bool `json:"confirmed"`
	// Start and End are ISO texts in UTC with milliseconds; null when unknown.
	Start  *string     `json:"start"`
	End    *string     `json:"end"`
	Orders []EventJSON `json:"orders"`
}

// Result returns the form that results of actions show. It shares the orders'
// memory.
func (g OrderGroup) Result() OrderGroupResult {
	listing, _ := g.EmbeddedListing()
	result := OrderGroupResult{
		GroupID:       g.ID(),
		TradeID:       g.TradeID(),
		ListingAnchor: g.ListingAnchor(),
		ListingTitle:  listing.Title,
		SellerPubkey:  g.SellerPubkey(),
		BuyerPubkey:   textOrNull(g.BuyerPubkey()),
		EscrowPubkey:  textOrNull(g.EscrowPubkey()),
		Stage:         g.Stage(),
		Cancelled:     g.Cancelled(),
		Active:        g.Active(),
		Confirmed:     g.Confirmed(),
		Start:         dateOrNull(g.Start()),
		End:           dateOrNull(g.End()),
		Orders:        make([]EventJSON, 0, len(g.orders)),
	}
	for _, order := range g.orders {
		result.Orders = append(result.Orders, NewEventJSON(order.Event))
	}
	return result
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func dateOrNull(date *time.Time) *string {
	if date == nil {
		return nil
	}
	return textOrNull(formatInstant(*date))
}
