package market

import (
	"math/big"
	"regexp"
	"strings"

	"github.com/btcsuite/btcd/btcutil/bech32"
	"github.com/nbd-wtf/go-nostr"
)

// checkZap checks a Lightning payment by its receipt (NIP-57; spec 50 §13.3). The
// receipt is the word of whoever signed it: who serves the seller's address is not
// asked.
func (v *OrderVerification) checkZap(order Order, listing Listing) {
	owner, _ := order.Listing()
	expected, err := order.ExpectedAmount(listing)
	if err == nil && expected.BelowPrice {
		v.check("negotiationAllowed", expected.NegotiationAllowed, string(NegotiationNotAllowed))
	}
	if err == nil && expected.OffPrice {
		v.check("sellerCommit", expected.SellerCommitted, string(MissingSellerCommitment))
	}
	payment := order.Proof.Payment
	receipt, problem := DecodeEmbeddedEvent(payment.ZapReceipt)
	if problem != nil {
		receipt = &nostr.Event{}
	}
	paid := zappedSatoshis(receipt)
	enough := err == nil && paid != nil && expected.Amount.Value != nil && paid.Cmp(expected.Amount.Value) >= 0
	v.check("zapAmount", enough, "the zap receipt does not show the expected amount")
	recipient, _ := firstValue(receipt.Tags, "p")
	v.check("zapRecipient", recipient == owner.PubKey, "the zap receipt is not for the host")
	profile, err := DecodeProfile(payment.RecipientProfile)
	v.check("recipientProfile", err == nil && profile.PubKey == owner.PubKey, "the profile in the proof is not the host's")
	v.check("zapLnurl", err == nil && zapsAddress(receipt, profile.LUD16), "the zap receipt is not for the Lightning address of the profile")
}

// invoiceAmount is the amount in the readable part of a BOLT11 invoice: digits of
// bitcoin, divided by the power of ten that the letter stands for.
var invoiceAmount = regexp.MustCompile(`^ln(?:bcrt|bc|tbs|tb)(\d{1,20})([munp]?)1`)

// zappedSatoshis returns the amount of the receipt's invoice, whole satoshis; nil
// when it shows none.
func zappedSatoshis(receipt *nostr.Event) *big.Int {
	invoice, _ := firstValue(receipt.Tags, "bolt11")
	parts := invoiceAmount.FindStringSubmatch(strings.ToLower(strings.TrimSpace(invoice)))
	if parts == nil || receipt.Kind != nostr.KindZap {
		return nil
	}
	picobitcoins := map[string]int64{"": 1e12, "m": 1e9, "u": 1e6, "n": 1e3, "p": 1}[parts[2]]
	amount, _ := new(big.Int).SetString(parts[1], 10)
	amount.Mul(amount, big.NewInt(picobitcoins))
	return amount.Quo(amount, big.NewInt(1e4))
}

// zapsAddress reports whether the request inside the receipt names this Lightning
// address, plainly or as the URL it stands for (LUD-16).
func zapsAddress(receipt *nostr.Event, address string) bool {
	description, _ := firstValue(receipt.Tags, "description")
	request, err := DecodeEmbeddedEvent(description)
	if err != nil || address == "" {
		return false
	}
	lnurl, _ := firstValue(request.Tags, "lnurl")
	if strings.EqualFold(lnurl, address) {
		return true
	}
	name, domain, ok := strings.Cut(strings.ToLower(address), "@")
	return ok && decodeLNURL(lnurl) == "https://"+domain+"/.well-known/lnurlp/"+name
}

// decodeLNURL returns the URL inside an lnurl1… text; "" when it is none.
func decodeLNURL(text string) string {
	prefix, data, err := bech32.DecodeNoLimit(text)
	if err != nil || prefix != "lnurl" {
		return ""
	}
	url, err := bech32.ConvertBits(data, 5, 8, false)
	if err != nil {
		return ""
	}
	return string(url)
}
