package profiles

import (
	"slices"
	"strings"

	"hostr-daemon/internal/jsontext"
)

// editedField is one of the fields that every edit writes (spec 20 §10.5).
type editedField struct {
	name string
	// given is the new value, "" when the field stays.
	given string
	// current is the value in the content, JSON text, nil when there is none.
	current []byte
}

// fields lists the fields in the order in which a new profile has them.
func (r EditRequest) fields() []editedField {
	return []editedField{
		{name: "name", given: given(r.Name)},
		{name: "picture", given: given(r.Picture)},
		{name: "about", given: given(r.About)},
		{name: "nip05", given: given(r.NIP05)},
		{name: "lud16", given: given(r.LUD16)},
	}
}

func given(text string) string { return strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD") }

// appendValue appends the given value, else the current text, else an empty text.
func (f *editedField) appendValue(dst []byte) []byte {
	switch {
	case f.given != "":
		return jsontext.AppendQuotedString(dst, f.given)
	case len(f.current) > 0 && f.current[0] == '"':
		return append(dst, f.current...)
	default:
		return append(dst, `""`...)
	}
}

// mergedContent returns the content of a profile with the five fields of an edit
// set: in their old places, and behind the rest where they are new. Everything else
// stays byte for byte in its order, but for bytes that are not UTF-8, which relays
// refuse. Blank content is an object without fields; content that is no JSON object
// is an error.
func mergedContent(content string, request EditRequest) (string, error) {
	text := []byte(strings.ToValidUTF8(strings.TrimSpace(content), "\uFFFD"))
	if len(text) == 0 {
		text = []byte("{}")
	}
	fields := request.fields()
	members, err := membersOf(text, fields)
	if err != nil {
		return "", err
	}
	merged := append(make([]byte, 0, len(text)+256), '{')
	for i, member := range members {
		if i > 0 {
			merged = append(merged, ',')
		}
		merged = append(append(merged, member.key...), ':')
		if member.edited != nil {
			merged = member.edited.appendValue(merged)
		} else {
			merged = append(merged, member.value...)
		}
	}
	return string(append(merged, '}')), nil
}

// member is a member of the new content: JSON text, or an edited field.
type member struct {
	key, value []byte
	edited     *editedField
}

// membersOf lists the members of the object in order, then the fields it lacks. Of
// a field that is there more than once the first place and the last value count.
func membersOf(object []byte, fields []editedField) ([]member, error) {
	var members []member
	err := jsontext.Members(object, func(key, value jsontext.Span) {
		name := string(jsontext.AppendUnquoted(nil, key.Of(object)))
		i := slices.IndexFunc(fields, func(field editedField) bool { return field.name == name })
		if i < 0 {
			members = append(members, member{key: key.Of(object), value: value.Of(object)})
			return
		}
		if fields[i].current == nil {
			members = append(members, member{key: key.Of(object), edited: &fields[i]})
		}
		fields[i].current = value.Of(object)
	})
	if err != nil {
		return nil, err
	}
	for i := range fields {
		if fields[i].current == nil {
			members = append(members, member{key: []byte(`"` + fields[i].name + `"`), edited: &fields[i]})
		}
	}
	return members, nil
}
