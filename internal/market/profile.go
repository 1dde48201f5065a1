package market

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/nbd-wtf/go-nostr"
	"github.com/tidwall/gjson"
)

// Profile is what a person says of themselves, a kind-0 event (NIP-01, NIP-24;
// spec 20 §10). Fields that are missing or no text are empty.
type Profile struct {
	// Event is the event as found; it must not be changed.
	Event       *nostr.Event
	PubKey      string
	CreatedAt   nostr.Timestamp
	Name        string
	DisplayName string
	About       string
	Picture     string
	Banner      string
	Website     string
	// NIP05 is an internet identifier, not verified here.
	NIP05 string
	// LUD06 and LUD16 tell where Lightning payments go.
	LUD06 string
	LUD16 string

	content json.RawMessage
	// texts are the fields that hold text, in order, each name once.
	texts []textField
}

type textField struct{ name, value string }

// ErrNotProfile says that an event is of another kind or its content no JSON
// object, so that its author has no profile as far as this event goes.
var ErrNotProfile = errors.New("the event is not a profile")

// DecodeProfile reads a profile. Blank content is a profile without fields.
// ErrNotProfile is the only error.
func DecodeProfile(event *nostr.Event) (*Profile, error) {
	if event == nil || event.Kind != nostr.KindProfileMetadata {
		return nil, ErrNotProfile
	}
	content := strings.ToValidUTF8(strings.TrimSpace(event.Content), "\uFFFD")
	if content == "" {
		content = "{}"
	}
	if content[0] != '{' || !json.Valid([]byte(content)) {
		return nil, ErrNotProfile
	}
	profile := &Profile{
		Event:     event,
		PubKey:    event.PubKey,
		CreatedAt: event.CreatedAt,
		content:   json.RawMessage(content),
		texts:     textFields(content),
	}
	known := map[string]*string{
		"name": &profile.Name, "display_name": &profile.DisplayName, "about": &profile.About,
		"picture": &profile.Picture, "banner": &profile.Banner, "website": &profile.Website,
		"nip05": &profile.NIP05, "lud06": &profile.LUD06, "lud16": &profile.LUD16,
	}
	for _, field := range profile.texts {
		if target := known[field.name]; target != nil {
			*target = field.value
		}
	}
	return profile, nil
}

// EventJSON returns the event as results show it.
func (p *Profile) EventJSON() EventJSON { return NewEventJSON(p.Event) }

// Metadata returns the profile as results show it.
func (p *Profile) Metadata() Metadata { return Metadata{profile: p} }

// Metadata is a profile as results of actions show it (spec 20 §10.2): every
// text field of the content flat, then pubKey, content (the whole object as it
// was written), updatedAt (the event's created_at, Unix seconds), and tags when
// there are any. A text field named like one of these four is only in content.
type Metadata struct{ profile *Profile }

// metadataKeys are the keys that a field of the content must not take.
var metadataKeys = map[string]bool{"pubKey": true, "content": true, "updatedAt": true, "tags": true}

// MarshalJSON writes the union.
func (m Metadata) MarshalJSON() ([]byte, error) {
	if m.profile == nil {
		return []byte("null"), nil
	}
	object := newObjectWriter()
	for _, field := range m.profile.texts {
		if !metadataKeys[field.name] {
			object.write(field.name, field.value)
		}
	}
	object.write("pubKey", m.profile.PubKey)
	object.write("content", m.profile.content)
	object.write("updatedAt", m.profile.CreatedAt)
	if len(m.profile.Event.Tags) > 0 {
		object.write("tags", arraysOnly(m.profile.Event.Tags))
	}
	return object.end()
}

// textFields lists the fields of a valid JSON object that hold text. Of a
// repeated name the last value counts.
func textFields(object string) []textField {
	var names []string
	values := map[string]gjson.Result{}
	gjson.Parse(object).ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		if _, repeated := values[name]; !repeated {
			names = append(names, name)
		}
		values[name] = value
		return true
	})
	var fields []textField
	for _, name := range names {
		if value := values[name]; value.Type == gjson.String {
			fields = append(fields, textField{name: name, value: value.String()})
		}
	}
	return fields
}

// objectWriter writes a JSON object whose keys are only known at run time.
type objectWriter struct {
	text    bytes.Buffer
	encoder *json.Encoder
	err     error
}

func newObjectWriter() *objectWriter {
	writer := &objectWriter{}
	writer.encoder = json.NewEncoder(&writer.text)
	writer.encoder.SetEscapeHTML(false)
	writer.text.WriteByte('{')
	return writer
}

func (w *objectWriter) write(name string, value any) {
	if w.text.Len() > 1 {
		w.text.WriteByte(',')
	}
	w.encode(name)
	w.text.WriteByte(':')
	w.encode(value)
}

func (w *objectWriter) encode(value any) {
	if err := w.encoder.Encode(value); err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.text.Truncate(w.text.Len() - 1) // the line break that Encode ends with
}

func (w *objectWriter) end() ([]byte, error) {
	w.text.WriteByte('}')
	return w.text.Bytes(), w.err
}
