// Package catalog is the public face of hostr-daemon: every action it can run,
// with its names, texts, role and input schema (spec 30).
//
// It knows what is told to callers: lookup by id, the describe answer, and what
// an account may see. It must never know how an action runs.
//
// The files in actions/ are the one source. From them, go generate also writes
// the typed inputs of package actions, the bridge's hostr-actions.ts and
// docs/actions.md.
package catalog

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"hostr-daemon/catalog/definition"
)

//go:generate go run ./generate

// Version is the version of the catalog's form, told by describe.
const Version = 1

//go:embed actions/*.json families.json guidance.json specifications.json interfaces.json
var files embed.FS

// Catalog is the set of all actions. It does not change and may be used from many
// goroutines.
type Catalog struct {
	actions []Action
	byID    map[string]int
	render  func() rendering
	// specifications are the amenity keys of a listing.
	specifications []string
}

// Load reads the embedded catalog. An error means that the program was built from
// a broken catalog.
func Load() (*Catalog, error) {
	set, err := definition.Read(files)
	if err != nil {
		return nil, err
	}
	catalog := &Catalog{
		byID:           map[string]int{},
		specifications: slices.Concat(set.Specifications.Numeric, set.Specifications.Boolean),
	}
	for _, defined := range set.Actions() {
		action, err := newAction(set, defined)
		if err != nil {
			return nil, err
		}
		catalog.byID[action.ID] = len(catalog.actions)
		catalog.actions = append(catalog.actions, action)
	}
	catalog.render = sync.OnceValue(func() rendering { return render(catalog.actions) })
	return catalog, nil
}

// Lookup returns the action with that id. Ids are compared whole, case included.
func (c *Catalog) Lookup(id string) (Action, bool) {
	place, found := c.byID[id]
	if !found {
		return Action{}, false
	}
	return c.actions[place], true
}

// IDs returns the ids of all actions in catalog order.
func (c *Catalog) IDs() []string {
	ids := make([]string, 0, len(c.actions))
	for _, action := range c.actions {
		ids = append(ids, action.ID)
	}
	return ids
}

// Actions returns all actions in catalog order.
func (c *Catalog) Actions() []Action { return slices.Clone(c.actions) }

// Specifications returns the amenity keys of a listing, which searches call features.
func (c *Catalog) Specifications() []string { return slices.Clone(c.specifications) }

// Describe returns the result of the method describe (spec 30 §3), compact. It is
// rendered once; the caller must not change it.
func (c *Catalog) Describe() json.RawMessage { return c.render().describe }

// rendering is the catalog as JSON.
type rendering struct {
	describe json.RawMessage
	// specs are the parts of describe, one for each action.
	specs []json.RawMessage
}

func render(actions []Action) rendering {
	var whole bytes.Buffer
	encoder := json.NewEncoder(&whole)
	encoder.SetEscapeHTML(false)
	fmt.Fprintf(&whole, `{"version":%d,"actions":[`, Version)
	bounds := make([][2]int, 0, len(actions))
	for i, action := range actions {
		if i > 0 {
			whole.WriteByte(',')
		}
		start := whole.Len()
		// Nothing in a spec can fail to encode: its only raw part was read as JSON.
		_ = encoder.Encode(action.spec())
		whole.Truncate(whole.Len() - len("\n"))
		bounds = append(bounds, [2]int{start, whole.Len()})
	}
	whole.WriteString("]}")
	rendered := rendering{describe: whole.Bytes()}
	for _, bound := range bounds {
		rendered.specs = append(rendered.specs, rendered.describe[bound[0]:bound[1]:bound[1]])
	}
	return rendered
}
