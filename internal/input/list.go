package input

import (
	"strings"

	"github.com/tidwall/gjson"

	"hostr-daemon/internal/market"
)

// TextList reads a list of texts, or one text split at its commas. Items are
// trimmed; empty and null ones are dropped. Absent is an empty list.
func (p Property) TextList() []string { return texts(p.textItems("item")) }

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

// textItems reads a list, trying the aliases while it comes out empty. The noun
// says in messages what the list is made of.
func (p Property) textItems(noun string) []textItem {
	for _, candidate := range p.candidates {
		items, ok := p.textItemsOf(candidate)
		if !ok || len(items) > 0 {
			return items
		}
	}
	if p.required {
		p.code = p.missingCode
		p.fail(ReasonMissing, "", "is required: at least one %s", noun)
	}
	return nil
}

// textItemsOf reports false after a problem.
func (p Property) textItemsOf(value gjson.Result) (items []textItem, ok bool) {
	if value.IsObject() {
		p.fail(ReasonType, "", "must be a list of texts, not an object")
		return nil, false
	}
	if !value.IsArray() {
		text, _ := textOf(value)
		for index, piece := range splitAtCommas(text) {
			items = append(items, textItem{index, piece})
		}
		return items, true
	}
	ok = true
	for index, item := range elements(value) {
		text, readable := textOf(item)
		if !readable {
			p.item(index, item).wrongType("text", "")
			ok = false
		}
		if text != "" {
			items = append(items, textItem{index, text})
		}
	}
	return items, ok
}

// splitAtCommas splits a text into trimmed pieces and drops the empty ones. The
// identifier of an anchor may hold commas: a piece that is no anchor belongs to
// the kind:pubkey:identifier before it.
func splitAtCommas(text string) []string {
	var pieces []string
	// from is where the anchor that is being put together starts in text.
	from, at := -1, 0
	for piece := range strings.SplitSeq(text, ",") {
		start, end := at, at+len(piece)
		at = end + len(",")
		trimmed := clean(piece)
		_, err := market.ParseAnchor(trimmed)
		switch {
		case trimmed == "":
		case err == nil && trimmed[0] <= '9': // a kind number, so not an naddr
			from = start
			pieces = append(pieces, trimmed)
		case err == nil || from < 0:
			from = -1
			pieces = append(pieces, trimmed)
		default:
			pieces[len(pieces)-1] = clean(text[from:end])
		}
	}
	return pieces
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
