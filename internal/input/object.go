package input

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// Object is a JSON object that keeps the order of its keys. Of a key that stood
// twice it holds the last value at the first place. The zero value is empty.
type Object struct{ members []Member }

// Member is one key of an Object with its value as written.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members returns the keys and values in order.
func (o Object) Members() []Member { return slices.Clone(o.members) }

// Len returns the number of keys.
func (o Object) Len() int { return len(o.members) }

// Get returns the value of a key, null included.
func (o Object) Get(name string) (json.RawMessage, bool) {
	for _, member := range o.members {
		if member.Name == name {
			return member.Value, true
		}
	}
	return nil, false
}

// MarshalJSON writes the object in its order.
func (o Object) MarshalJSON() ([]byte, error) {
	written := []byte{'{'}
	for i, member := range o.members {
		if i > 0 {
			written = append(written, ',')
		}
		name, err := json.Marshal(member.Name)
		if err != nil {
			return nil, err
		}
		written = append(append(append(written, name...), ':'), member.Value...)
	}
	return append(written, '}'), nil
}

// UnmarshalJSON reads an object; null is an empty one.
func (o *Object) UnmarshalJSON(raw []byte) error {
	node := gjson.ParseBytes(raw)
	if node.Type != gjson.Null && !node.IsObject() {
		return &json.UnmarshalTypeError{Value: kindOf(node)}
	}
	*o = objectOf(node)
	return nil
}

// Object reads an object as it stands; absent is an empty one.
func (p Property) Object() Object {
	if object := p.OptionalObject(); object != nil {
		return *object
	}
	return Object{}
}

// OptionalObject reads an object as it stands; absent is nil.
func (p Property) OptionalObject() *Object {
	if len(p.candidates) == 0 {
		p.absent()
		return nil
	}
	if !p.candidates[0].IsObject() {
		p.wrongType("an object", "")
		return nil
	}
	object := objectOf(p.candidates[0])
	return &object
}

func objectOf(node gjson.Result) Object {
	object := Object{}
	places := map[string]int{}
	node.ForEach(func(key, value gjson.Result) bool {
		member := Member{Name: key.Str, Value: json.RawMessage(value.Raw)}
		if place, again := places[member.Name]; again {
			object.members[place] = member
			return true
		}
		places[member.Name] = len(object.members)
		object.members = append(object.members, member)
		return true
	})
	return object
}
