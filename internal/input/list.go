package input

import (
	"iter"
	"strings"

	"github.com/tidwall/gjson"

	"hostr-daemon/internal/market"
)

// TextList reads a list of texts, or one text split at its commas. Items are
// trimmed; empty and null ones are dropped. Absent is an empty list.
func (p Property) TextList() []string { return texts(p.textItems(plainTexts)) }

// textItem is one text of a list and its place there.
type textItem struct {
	index int
	text  string
}

func texts(items []textItem) []string {
	var texts []string
	for _, item := range items {
		texts = append(texts, item.text)
	}
	return texts
}

// textList says what a list of texts is made of.
type textList struct {
	// noun names an item in messages.
	noun string
	// most is the most items: work is done for each of them.
	most int
	// split takes a text apart at its commas into trimmed pieces, without empty ones.
	split func(text string) iter.Seq[string]
}

// The most items lie above what a call can mean: a place has not 200 features, and a
// person does not compare 200 places.
var (
	plainTexts  = textList{noun: "item", most: 500, split: splitAtCommas}
	anchorTexts = textList{noun: "listing anchor", most: 200, split: splitAnchors}
	pubkeyTexts = textList{noun: "public key", most: 200, split: splitAtCommas}
)

// maxItemBytes bounds one item of a list of texts: the longest naddr that is decoded
// has as many.
const maxItemBytes = 5000

// textItems reads a list, trying the aliases while it comes out empty.
func (p Property) textItems(list textList) []textItem {
	for _, candidate := range p.candidates {
		items, ok := p.textItemsOf(candidate, list)
		if !ok || len(items) > 0 {
			return items
		}
	}
	if p.required {
		p.code = p.missingCode
		p.fail(ReasonMissing, "", "is required: at least one %s", list.noun)
	}
	return nil
}

// textItemsOf reports false after a problem. One that the whole list has ends the
// reading.
func (p Property) textItemsOf(value gjson.Result, list textList) (items []textItem, ok bool) {
	switch {
	case value.IsObject():
		p.fail(ReasonType, "", "must be a list of texts, not an object")
		return nil, false
	case !value.IsArray():
		text, _ := textOf(value)
		for piece := range list.split(text) {
			if !p.holds(len(items), list) || !p.at(len(items)).fits(piece) {
				return nil, false
			}
			items = append(items, textItem{len(items), piece})
		}
		return items, true
	}
	ok = true
	index, wrong := -1, 0
	value.ForEach(func(_, item gjson.Result) bool {
		index++
		text, readable := textOf(item)
		switch {
		case readable && text == "":
			return true
		case !p.holds(len(items)+wrong, list):
			items, ok = nil, false
			return false
		case !readable:
			p.item(index, item).wrongType("text", "")
			wrong, ok = wrong+1, false
		case !p.at(index).fits(text):
			wrong, ok = wrong+1, false
		default:
			items = append(items, textItem{index, text})
		}
		return true
	})
	return items, ok
}

// holds makes it a problem when a list with so many items has one more than it may.
func (p Property) holds(count int, list textList) bool {
	if count < list.most {
		return true
	}
	p.fail(ReasonRange, "several calls with fewer", "must not hold more than %d of: %s", list.most, list.noun)
	return false
}

// fits makes it a problem when an item is longer than any can be.
func (p Property) fits(text string) bool {
	if len(text) <= maxItemBytes {
		return true
	}
	p.fail(ReasonRange, "", "is longer than %d bytes", maxItemBytes)
	return false
}

func splitAtCommas(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for piece := range strings.SplitSeq(text, ",") {
			if trimmed := strings.TrimSpace(piece); trimmed != "" && !yield(trimmed) {
				return
			}
		}
	}
}

// splitAnchors splits a list of anchors. The identifier of an anchor may hold commas: a
// piece that is no anchor belongs to the kind:pubkey:identifier before it.
func splitAnchors(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		// The item under way is text[from:end]. It is open when more may belong to it.
		from, end, open, at := 0, 0, false, 0
		for piece := range strings.SplitSeq(text, ",") {
			start := at
			at += len(piece) + len(",")
			trimmed := strings.TrimSpace(piece)
			if trimmed == "" {
				continue
			}
			_, err := market.ParseAnchor(trimmed)
			if open = open && err != nil && end-from <= maxItemBytes; open {
				end = start + len(piece)
				continue
			}
			if end > from && !yield(strings.TrimSpace(text[from:end])) {
				return
			}
			from, end, open = start, start+len(piece), err == nil && trimmed[0] <= '9' // a kind number, so no naddr
		}
		if end > from {
			yield(strings.TrimSpace(text[from:end]))
		}
	}
}

// objects reads a list of objects, or one object, as readers. Every other item is
// a problem; null items are dropped.
func (p Property) objects() []*Reader {
	for _, candidate := range p.candidates {
		if readers, any := p.objectsOf(candidate); any {
			return readers
		}
	}
	p.absent()
	return nil
}

// objectsOf reports whether the value held any item, good or bad.
func (p Property) objectsOf(value gjson.Result) (readers []*Reader, any bool) {
	for index, item := range elements(value) {
		if item.Type == gjson.Null {
			continue
		}
		any = true
		place := p.item(index, item)
		if !item.IsObject() {
			place.wrongType("an object", "")
			continue
		}
		readers = append(readers, p.reader.nested(item, place.path))
	}
	return readers, any
}

// elements returns the items of a list; any other value is a list of one.
func elements(value gjson.Result) []gjson.Result {
	if !value.IsArray() {
		return []gjson.Result{value}
	}
	var list []gjson.Result
	value.ForEach(func(_, item gjson.Result) bool {
		list = append(list, item)
		return true
	})
	return list
}
