package input

import (
	"fmt"

	"hostr-daemon/internal/market"
)

// GivenAnchor is an anchor as it came in. The zero value stands for none.
type GivenAnchor struct {
	market.Anchor
	// Given is the text to echo in results (spec 40 §3).
	Given string
}

// IsZero reports whether no anchor was given.
func (a GivenAnchor) IsZero() bool { return a.Given == "" }

const anchorHint = "kind:pubkey:identifier or naddr1…"

// Anchor reads an anchor; absent is the zero value.
func (p Property) Anchor() GivenAnchor {
	text, ok := p.text()
	if !ok || text == "" {
		return GivenAnchor{}
	}
	anchor, err := market.ParseAnchor(text)
	if err != nil {
		p.notAnAnchor()
		return GivenAnchor{}
	}
	return GivenAnchor{Anchor: anchor, Given: text}
}

// Anchors reads a list of anchors as TextList reads texts.
func (p Property) Anchors() []GivenAnchor { return p.decode(p.textItems(anchorTexts)) }

// AnchorTexts reads a list of anchors without decoding them, for an action that
// takes other text too (spec 30 §9).
func (p Property) AnchorTexts() []string { return texts(p.textItems(anchorTexts)) }

// DecodeAnchors decodes what AnchorTexts has read under that name. The error is
// the one that Anchors would have given.
func DecodeAnchors(name string, texts []string) ([]GivenAnchor, error) {
	reader := NewReader(nil)
	items := make([]textItem, 0, len(texts))
	for index, text := range texts {
		items = append(items, textItem{index, text})
	}
	anchors := reader.Property(name).decode(items)
	return anchors, reader.Err()
}

func (p Property) decode(items []textItem) []GivenAnchor {
	var anchors []GivenAnchor
	for _, item := range items {
		anchor, err := market.ParseAnchor(item.text)
		if err != nil {
			p.at(item.index).notAnAnchor()
			continue
		}
		anchors = append(anchors, GivenAnchor{Anchor: anchor, Given: item.text})
	}
	return anchors
}

func (p Property) notAnAnchor() {
	p.fail(ReasonFormat, anchorHint, "must be an anchor: kind:pubkey:identifier, or an naddr that can be decoded")
}

// at returns the property that stands for one item of a list of texts.
func (p Property) at(index int) Property {
	p.path = fmt.Sprintf("%s[%d]", p.path, index)
	return p
}
