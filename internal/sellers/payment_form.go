package sellers

import (
	"slices"
	"strings"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/boltz"
	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/money"
)

const (
	// appID marks the forms that Hostr clients look after.
	appID = "hostr"

	bridgeSymbol, bridgeDenomination = "tBTC", "BTC"
	dollarSymbol, dollarDenomination = "USDT", "USD"
)

// paymentForm is one accepted way of payment, an o tag (spec 70 §4). Forms are equal
// when they are the same after normal.
type paymentForm struct {
	denomination string
	// token is "<chainId>:<address>".
	token string
	// app is the client that looks after the form. hasApp is false where the tag ends
	// before it.
	app    string
	hasApp bool
}

func hostrForm(denomination string, token money.Token) paymentForm {
	return paymentForm{denomination, token.TagID(), appID, true}
}

// readForm reads an o tag; ok is false for every other tag, and one too short.
func readForm(tag nostr.Tag) (form paymentForm, ok bool) {
	if len(tag) < 3 || tag[0] != "o" {
		return paymentForm{}, false
	}
	form = paymentForm{denomination: tag[1], token: tag[2]}
	if len(tag) > 3 {
		form.app, form.hasApp = tag[3], true
	}
	return form, true
}

func (f paymentForm) tag() nostr.Tag {
	tag := nostr.Tag{"o", f.denomination, f.token}
	if f.hasApp {
		tag = append(tag, f.app)
	}
	return tag
}

// normal returns the form as it is compared: the address in lower case.
func (f paymentForm) normal() paymentForm {
	chain, address, found := strings.Cut(f.token, ":")
	if found && (strings.HasPrefix(address, "0x") || strings.HasPrefix(address, "0X")) {
		f.token = chain + ":" + strings.ToLower(address)
	}
	return f
}

func (f paymentForm) isHostr() bool   { return f.hasApp && f.app == appID }
func (f paymentForm) isForeign() bool { return f.hasApp && f.app != appID }

// sameForms compares two lists as sets.
func sameForms(some, others []paymentForm) bool {
	set := func(forms []paymentForm) map[paymentForm]bool {
		members := map[paymentForm]bool{}
		for _, form := range forms {
			members[form.normal()] = true
		}
		return members
	}
	one, other := set(some), set(others)
	for form := range one {
		if !other[form] {
			return false
		}
	}
	return len(one) == len(other)
}

// paymentForms returns the forms that the chains and the swap provider allow (spec 20
// §9 step 4).
func paymentForms(chains []environment.Chain, swaps []boltz.Chain) []paymentForm {
	var forms []paymentForm
	for _, chain := range chains {
		token := func(address string) money.Token { return money.Token{ChainID: chain.ChainID, Address: address} }
		if swap, attached := boltz.Find(swaps, chain.ChainID); attached {
			forms = append(forms, hostrForm(chain.NativeDenomination, token(money.NativeAddress)))
			if bridge, ok := tokenOf(chain, bridgeSymbol); ok && swap.Supports(bridge) {
				forms = append(forms, hostrForm(bridgeDenomination, token(bridge)))
			}
		}
		if dollar, ok := tokenOf(chain, dollarSymbol); ok {
			forms = append(forms, hostrForm(dollarDenomination, token(dollar)))
		}
	}
	return forms
}

// tokenOf returns the address of a configured token.
func tokenOf(chain environment.Chain, symbol string) (address string, ok bool) {
	at := slices.IndexFunc(chain.Tokens, func(t environment.Token) bool { return t.Symbol == symbol })
	if at < 0 {
		return "", false
	}
	return chain.Tokens[at].Address, true
}
