package market

import (
	"errors"
	"slices"
	"strconv"

	"github.com/nbd-wtf/go-nostr"
	"github.com/tidwall/gjson"
)

// Specifications are the named properties of a place, in the order they were
// given: the order of a listing's tags follows it (spec 40 §1.6). The zero value
// is empty and ready to use.
type Specifications struct {
	entries []Specification
	places  map[string]int
}

// Specification is one property, such as kitchen or beds.
type Specification struct {
	Name  string
	Value SpecificationValue
}

// SpecificationValue is a flag, a count or, in foreign listings, a text. The
// zero value is none of them and writes no tag.
type SpecificationValue struct {
	kind  specificationKind
	count int64
	text  string
}

type specificationKind uint8

const (
	kindUnset specificationKind = iota
	kindFlag
	kindCount
	kindText
)

// Flag is the value of a property that is simply there.
func Flag() SpecificationValue { return SpecificationValue{kind: kindFlag} }

// Count is the value of a property that is counted.
func Count(n int64) SpecificationValue { return SpecificationValue{kind: kindCount, count: n} }

// linearLimit is up to how many entries scanning beats a map.
const linearLimit = 24

// Set gives a property a value; one that is already there keeps its place.
func (s *Specifications) Set(name string, value SpecificationValue) {
	if place, ok := s.place(name); ok {
		s.entries[place].Value = value
		return
	}
	if s.entries == nil {
		s.entries = make([]Specification, 0, 8)
	}
	s.entries = append(s.entries, Specification{Name: name, Value: value})
	if s.places != nil {
		s.places[name] = len(s.entries) - 1
	}
}

// Entries returns the properties in order; the slice must not be changed.
func (s Specifications) Entries() []Specification { return s.entries }

// With returns a copy with the counters laid over it: each keeps the place of a
// property that is already there, else it is appended; 0 or less removes it.
func (s Specifications) With(counters ...Counter) Specifications {
	var laid Specifications
	for _, entry := range s.entries {
		laid.Set(entry.Name, entry.Value)
	}
	for _, counter := range counters {
		if counter.Count > 0 {
			laid.Set(counter.Name, Count(counter.Count))
		} else {
			laid.remove(counter.Name)
		}
	}
	return laid
}

// Counter is a count given beside the properties, such as an input's guests.
type Counter struct {
	// Name is the property: max_guests, beds, bedrooms, bathrooms.
	Name  string
	Count int64
}

// UnmarshalJSON reads an input object in the order of its keys. true is a flag,
// an integer a count; any other value writes no tag (spec 40 §1.6).
func (s *Specifications) UnmarshalJSON(data []byte) error {
	object := gjson.ParseBytes(data)
	if !object.IsObject() {
		return errors.New("specifications must be a JSON object")
	}
	*s = Specifications{}
	object.ForEach(func(key, value gjson.Result) bool {
		s.Set(key.String(), inputValue(value))
		return true
	})
	return nil
}

func inputValue(value gjson.Result) SpecificationValue {
	if value.Type == gjson.True {
		return Flag()
	}
	if n, err := strconv.ParseInt(value.Raw, 10, 64); err == nil {
		return Count(n)
	}
	return SpecificationValue{}
}

func (s *Specifications) place(name string) (int, bool) {
	if s.places == nil && len(s.entries) >= linearLimit {
		s.places = make(map[string]int, 2*len(s.entries))
		for place, entry := range s.entries {
			s.places[entry.Name] = place
		}
	}
	if s.places != nil {
		place, ok := s.places[name]
		return place, ok
	}
	place := slices.IndexFunc(s.entries, func(entry Specification) bool { return entry.Name == name })
	return place, place >= 0
}

func (s *Specifications) remove(name string) {
	if place, ok := s.place(name); ok {
		s.entries, s.places = slices.Delete(s.entries, place, place+1), nil
	}
}

// checkNames refuses names that nobody can mean; those that a listing has already are
// not checked.
func (s Specifications) checkNames() error {
	for i, entry := range s.entries {
		if len(entry.Name) > maxSpecificationName {
			return badSpecifications("use short names, such as kitchen or pool",
				"the name of property %d is longer than %d bytes", i+1, maxSpecificationName)
		}
	}
	return nil
}

// readTag reads a spec tag, or amenity, its legacy name.
func (s *Specifications) readTag(tag nostr.Tag) {
	switch n, isInteger := parseInteger(elementAt(tag, 2)); {
	case len(tag) == 2:
		s.Set(tag[1], Flag())
	case isInteger:
		s.Set(tag[1], Count(n))
	default:
		s.Set(tag[1], SpecificationValue{kind: kindText, text: tag[2]})
	}
}

// tags returns the spec tags; only flags and counts above 0 have one.
func (s Specifications) tags() nostr.Tags {
	tags := make(nostr.Tags, 0, len(s.entries))
	for _, entry := range s.entries {
		switch value := entry.Value; {
		case value.kind == kindFlag:
			tags = append(tags, nostr.Tag{"spec", entry.Name})
		case value.kind == kindCount && value.count > 0:
			tags = append(tags, nostr.Tag{"spec", entry.Name, strconv.FormatInt(value.count, 10)})
		}
	}
	return tags
}
