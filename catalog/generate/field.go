package main

import (
	"fmt"
	"strconv"
	"strings"

	"hostr-daemon/catalog/definition"
	"hostr-daemon/internal/fault"
)

// field is a property of an input as Go source.
type field struct {
	name string
	// goType is the type of the struct field.
	goType string
	// reading is the expression that takes the value from the reader r.
	reading string
}

// reading is a Go type and the method of input.Property that gives it.
type reading struct{ goType, method string }

func fieldOf(rule definition.NamedRule) (field, error) {
	how, err := readingOf(rule.Rule)
	if err != nil {
		return field{}, fmt.Errorf("property %s: %w", rule.Name, err)
	}
	chain, err := chainOf(rule)
	if err != nil {
		return field{}, fmt.Errorf("property %s: %w", rule.Name, err)
	}
	if rule.Kind == "patch" {
		chain = "r"
	}
	return field{name: goName(rule.Name), goType: how.goType, reading: chain + "." + how.method}, nil
}

// fixedReadings are the kinds of spec 30 §8, with their formats, that are always
// read in one way.
var fixedReadings = map[string]reading{
	"string/anchor":                 {"input.GivenAnchor", "Anchor()"},
	"string/pubkey":                 {"string", "Pubkey()"},
	"string/tradeId":                {"string", "TradeID()"},
	"string/duration":               {"string", "Duration()"},
	"stringList/":                   {"[]string", "TextList()"},
	"stringList/pubkey":             {"[]string", "Pubkeys()"},
	"objectList/cancellationPolicy": {"[]money.CancellationRule", "CancellationPolicies()"},
	"object/":                       {"input.Object", "Object()"},
	"amount/":                       {"*money.Amount", "Amount()"},
	"imageList/":                    {"[]input.Image", "Images()"},
	"priceList/":                    {"[]money.Price", "Prices()"},
	"ratio/":                        {"input.Ratio", "Ratio()"},
	"fee/":                          {"*input.Fee", "Fee()"},
	"patch/":                        {"input.ListingPatch", `ListingPatch("patch")`},
}

// readingOf finds how a property is read.
func readingOf(rule definition.Rule) (reading, error) {
	form := rule.Kind + "/" + rule.Format
	if rule.Lenient && form != "stringList/anchor" {
		return reading{}, fmt.Errorf("lenient is for lists of anchors")
	}
	if how, fixed := fixedReadings[form]; fixed {
		return how, nil
	}
	switch form {
	case "string/":
		return reading{"string", textMethod(rule)}, nil
	case "int/":
		return intReading(rule), nil
	case "bool/", "strictBool/":
		return boolReading(rule), nil
	case "stringList/anchor":
		if rule.Lenient {
			return reading{"[]string", "AnchorTexts()"}, nil
		}
		return reading{"[]input.GivenAnchor", "Anchors()"}, nil
	case "enum/":
		return reading{"string", "WordOr(" + defaultText(rule) + ", " + quoted(rule.Values) + ")"}, nil
	case "dateTime/":
		if rule.Required {
			return reading{"time.Time", "DateTime()"}, nil
		}
		return reading{"*time.Time", "OptionalDateTime()"}, nil
	default:
		return reading{}, fmt.Errorf("there is no reading of kind %q with format %q", rule.Kind, rule.Format)
	}
}

func textMethod(rule definition.Rule) string {
	if len(rule.Values) > 0 {
		return "Word(" + quoted(rule.Values) + ")"
	}
	return "Text()"
}

func intReading(rule definition.Rule) reading {
	switch {
	case len(rule.Default) > 0:
		return reading{"int", "IntOr(" + string(rule.Default) + ")"}
	case rule.Required:
		return reading{"int", "Int()"}
	default:
		return reading{"*int", "OptionalInt()"}
	}
}

func boolReading(rule definition.Rule) reading {
	if len(rule.Default) == 0 {
		return reading{"*bool", "OptionalBool()"}
	}
	return reading{"bool", "BoolOr(" + string(rule.Default) + ")"}
}

// chainOf writes the property and what it must be like.
func chainOf(rule definition.NamedRule) (string, error) {
	chain := "r.Property(" + quoted(append([]string{rule.Name}, rule.Aliases...)) + ")"
	if rule.Required {
		chain += ".Required()"
	}
	if rule.RequiredUnless != "" {
		chain += ".RequiredUnless(" + strconv.Quote(rule.RequiredUnless) + ")"
	}
	if rule.Lowercase {
		chain += ".Lower()"
	}
	if rule.Clamp != nil {
		chain += fmt.Sprintf(".Clamp(%d, %d)", rule.Clamp[0], rule.Clamp[1])
	}
	if rule.Range != nil {
		chain += fmt.Sprintf(".Range(%d, %d)", rule.Range[0], rule.Range[1])
	}
	if rule.Code == "" {
		return chain, nil
	}
	constant, known := codeConstants[fault.Code(rule.Code)]
	if !known {
		return "", fmt.Errorf("the generator knows no constant for the error code %q", rule.Code)
	}
	return chain + ".Code(fault." + constant + ")", nil
}

// codeConstants are the constants of the codes that parse rules name.
var codeConstants = map[fault.Code]string{
	fault.InvalidRentOrBuy:   "InvalidRentOrBuy",
	fault.InvalidListingType: "InvalidListingType",
	fault.InvalidDuration:    "InvalidDuration",
	fault.InvalidNPub:        "InvalidNPub",
}

// defaultText is a default that is a JSON text, as Go source.
func defaultText(rule definition.Rule) string {
	if len(rule.Default) == 0 {
		return `""`
	}
	return string(rule.Default)
}

func quoted(words []string) string {
	quotes := make([]string, 0, len(words))
	for _, word := range words {
		quotes = append(quotes, strconv.Quote(word))
	}
	return strings.Join(quotes, ", ")
}

// initialisms are the words that Go writes in capitals, and npub (NIP-19).
var initialisms = map[string]string{"id": "ID", "npub": "NPub", "nip05": "NIP05", "lud16": "LUD16"}

// goName turns a property's name into that of a Go field.
func goName(property string) string {
	var words []string
	start := 0
	for i, sign := range property {
		if i > start && sign >= 'A' && sign <= 'Z' {
			words = append(words, property[start:i])
			start = i
		}
	}
	name := ""
	for _, word := range append(words, property[start:]) {
		written, special := initialisms[strings.ToLower(word)]
		if !special {
			written = strings.ToUpper(word[:1]) + word[1:]
		}
		name += written
	}
	return name
}
