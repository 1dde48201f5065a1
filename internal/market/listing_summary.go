package market

import (
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/money"
)

// ListingSummary is a listing as results of actions show it (spec 40 §7.1).
type ListingSummary struct {
	ID string `json:"id"`
	// Anchor and DTag are null when the event has no d tag.
	Anchor      *string     `json:"anchor"`
	DTag        *string     `json:"dTag"`
	PubKey      string      `json:"pubkey"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Active      bool        `json:"active"`
	Negotiable  bool        `json:"negotiable"`
	AutoAccept  bool        `json:"autoAccept"`
	MinDuration string      `json:"minDuration,omitempty"`
	Type        ListingType `json:"type"`
	RentOrBuy   RentOrBuy   `json:"rentOrBuy"`
	Quantity    int64       `json:"quantity"`
	// Images are URLs.
	Images           []string             `json:"images"`
	Prices           []money.PriceResult  `json:"prices"`
	Specifications   SpecificationSummary `json:"specifications"`
	Location         string               `json:"location"`
	SecurityDeposit  *money.AmountResult  `json:"securityDeposit,omitempty"`
	MinPaymentAmount *money.AmountResult  `json:"minPaymentAmount,omitempty"`
	// MaxDisputePeriod is in seconds.
	MaxDisputePeriod   int64                    `json:"maxDisputePeriod"`
	CancellationPolicy []money.CancellationRule `json:"cancellationPolicy"`
	// Tags are those of the event as found.
	Tags nostr.Tags `json:"tags"`
}

// Summary returns the result form. It shares the listing's memory.
func (l Listing) Summary() ListingSummary {
	summary := ListingSummary{
		ID:                 l.Event.ID,
		DTag:               l.DTag,
		PubKey:             l.Event.PubKey,
		Title:              l.Title,
		Description:        l.Description,
		Active:             l.Active,
		Negotiable:         l.Negotiable,
		AutoAccept:         l.AutoAccept,
		MinDuration:        l.MinDuration,
		Type:               l.Type,
		RentOrBuy:          l.RentOrBuy(),
		Quantity:           l.Quantity,
		Images:             notNil(l.Images),
		Prices:             make([]money.PriceResult, 0, len(l.Prices)),
		Specifications:     l.Specifications.Summary(),
		Location:           l.Location,
		SecurityDeposit:    amountResult(l.SecurityDeposit),
		MinPaymentAmount:   amountResult(l.MinPaymentAmount),
		MaxDisputePeriod:   l.DisputePeriod(),
		CancellationPolicy: notNil(l.CancellationPolicy),
		Tags:               arraysOnly(l.Event.Tags),
	}
	if anchor, ok := l.Anchor(); ok {
		text := anchor.String()
		summary.Anchor = &text
	}
	for _, price := range l.Prices {
		summary.Prices = append(summary.Prices, price.Result())
	}
	return summary
}

func amountResult(amount *money.Amount) *money.AmountResult {
	if amount == nil {
		return nil
	}
	result := amount.Result()
	return &result
}

// notNil keeps an empty list from encoding as null.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
