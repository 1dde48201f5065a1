package input

import (
	"math/big"
	"strings"

	"github.com/tidwall/gjson"
)

// Fee is what an escrow asks for its service (spec 30 §8.2, 80 §2). Parts that
// were left out are 0: a given fee replaces the stored one whole.
type Fee struct {
	// PPM is the share of the payment in millionths.
	PPM int
	// Base, Min and Max are in the asset's smallest unit; 0 for none.
	Base *big.Int
	Min  *big.Int
	Max  *big.Int
	// Overrides are other fees for some assets, in the order given.
	Overrides []AssetFee
}

// AssetFee is the fee for one asset, named by its token contract or "native".
type AssetFee struct {
	Asset string
	Fee   Fee
}

// maxFeeDepth bounds fees inside fees, of which nobody reads the second level.
const maxFeeDepth = 4

// Fee reads a fee object; absent is nil.
func (p Property) Fee() *Fee {
	if len(p.candidates) == 0 {
		p.absent()
		return nil
	}
	fee := p.feeOf(p.candidates[0], 0)
	return &fee
}

func (p Property) feeOf(value gjson.Result, depth int) Fee {
	switch {
	case !value.IsObject():
		p.candidates = []gjson.Result{value}
		p.wrongType("an object", `{"ppm":10000,"base":"0","min":"0","max":"0"}`)
		return Fee{}
	case depth > maxFeeDepth:
		p.fail(ReasonFormat, "", "is nested too deeply")
		return Fee{}
	}
	r := p.reader.nested(value, p.path)
	return Fee{
		PPM:       r.Property("ppm").nonNegativeInt(),
		Base:      r.Property("base").nonNegative(),
		Min:       r.Property("min").nonNegative(),
		Max:       r.Property("max").nonNegative(),
		Overrides: r.Property("assetOverrides").assetFees(depth + 1),
	}
}

func (p Property) assetFees(depth int) []AssetFee {
	object := p.OptionalObject()
	if object == nil {
		return nil
	}
	var fees []AssetFee
	for _, member := range object.members {
		asset := clean(member.Name)
		value := gjson.ParseBytes(member.Value)
		if asset == "" || value.Type == gjson.Null {
			continue
		}
		place := p
		place.path = p.path + `["` + shown(asset) + `"]`
		fees = append(fees, AssetFee{Asset: asset, Fee: place.feeOf(value, depth)})
	}
	return fees
}

func (p Property) nonNegativeInt() int {
	value := p.nonNegative()
	if !value.IsInt64() {
		p.fail(ReasonRange, "", "is too large")
		return 0
	}
	return int(value.Int64())
}

// nonNegative reads a whole number of at most 256 bits; absent is 0.
func (p Property) nonNegative() *big.Int {
	const hint = "digits only, for example \"500\""
	if len(p.candidates) == 0 {
		return new(big.Int)
	}
	number, ok := wholeNumber(p.candidates[0])
	switch {
	case !ok || p.isHexadecimal():
		p.wrongType("a non-negative integer", hint)
	case number.Sign() < 0:
		p.fail(ReasonRange, hint, "must be a non-negative integer")
	case number.tooLarge || number.BitLen() > 256:
		p.fail(ReasonRange, hint, "is too large")
	default:
		return number.Int
	}
	return new(big.Int)
}

// isHexadecimal tells of text such as 0x10, which an amount may not be.
func (p Property) isHexadecimal() bool {
	value := p.candidates[0]
	return value.Type == gjson.String && strings.ContainsAny(value.Str, "xX")
}
