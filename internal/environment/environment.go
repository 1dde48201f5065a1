// Package environment holds the facts of the four Hostr environments: relays,
// Blossom servers, escrow operators, geocoder, chains and the swap provider, with
// the override file and the environment variables that replace them, and the
// development TLS rule (spec 11 §1–§4).
//
// It reads the override file it is given and nothing else. It must never open a
// connection, and never put the query of a URL or a key into a message.
package environment

import (
	"embed"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Environment is one environment with everything that was overridden. It is a
// value: each Resolve and Load returns a fresh one.
type Environment struct {
	// Name is the canonical name: development, test, staging or production. It
	// names the database, the secret folder and the envelope's environment.
	Name string
	// AppName and AppURL introduce the product to a remote signer (Nostr Connect).
	AppName, AppURL string
	// HostrRelay is the one relay that holds Hostr's own kinds, a ws or wss URL.
	HostrRelay string
	// BootstrapRelays are the public relays beside it; see BootstrapList.
	BootstrapRelays []string
	// Blossom are the base URLs of the media servers.
	Blossom []string
	// EscrowPubkeys are the escrow operators, 64 lowercase hex digits each.
	EscrowPubkeys []string
	// GeocoderURL is the search endpoint of the geocoder (spec 42 §1).
	GeocoderURL string
	// EVM holds the chains and the swap provider.
	EVM EVMConfig
	// AllowSelfSigned is true when HOSTR_CLI_ACCEPT_SELF_SIGNED_DEV_CERTS or
	// HOSTR_ACCEPT_SELF_SIGNED_DEV_CERTS is 1: the development TLS rule is in force
	// whatever the hosts, and covers all of the environment's own hosts.
	AllowSelfSigned bool
}

// UnknownNameError says that there is no environment of that name. Spec 10 §1.1
// makes it fatal, unlike every other error of this package.
type UnknownNameError struct {
	// Name is the name as given.
	Name string
	// Known lists the names there are, with their aliases.
	Known []string
}

func (e *UnknownNameError) Error() string {
	return fmt.Sprintf("there is no environment %q: use one of %s", shorten(e.Name), strings.Join(e.Known, ", "))
}

// Names returns the canonical names, development first.
func Names() []string {
	var canonical []string
	for _, known := range names {
		canonical = append(canonical, known.canonical)
	}
	return canonical
}

// Resolve returns the environment of a name or alias, trimmed and in any case. The
// only error is *UnknownNameError.
func Resolve(name string) (Environment, error) {
	wanted := strings.ToLower(strings.TrimSpace(name))
	unknown := &UnknownNameError{Name: name}
	for _, known := range names {
		if wanted == known.canonical || slices.Contains(known.aliases, wanted) {
			return facts(known.canonical), nil
		}
		listed := known.canonical
		if len(known.aliases) > 0 {
			listed += " (" + strings.Join(known.aliases, ", ") + ")"
		}
		unknown.Known = append(unknown.Known, listed)
	}
	return Environment{}, unknown
}

// Apply returns the environment with the given facts replaced as a whole.
func (e Environment) Apply(o Overrides) Environment {
	if o.HostrRelay != nil {
		e.HostrRelay = *o.HostrRelay
	}
	if o.BootstrapRelays != nil {
		e.BootstrapRelays = *o.BootstrapRelays
	}
	if o.Blossom != nil {
		e.Blossom = *o.Blossom
	}
	if o.EscrowPubkeys != nil {
		e.EscrowPubkeys = *o.EscrowPubkeys
	}
	if o.GeocoderURL != nil {
		e.GeocoderURL = *o.GeocoderURL
	}
	if o.EVM != nil {
		e.EVM = *o.EVM
	}
	return e
}

// BootstrapList returns the Hostr relay followed by the bootstrap relays: blanks,
// duplicates and the blocked relay dropped, order kept (spec 11 §2).
func (e Environment) BootstrapList() []string {
	seen := map[string]bool{}
	list := []string{}
	for _, relay := range append([]string{e.HostrRelay}, e.BootstrapRelays...) {
		relay = strings.TrimSpace(relay)
		key := relayKey(relay)
		if relay == "" || seen[key] || !e.Allowed(relay) {
			continue
		}
		seen[key] = true
		list = append(list, relay)
	}
	return list
}

// blockedRelay is never contacted unless it is the configured Hostr relay: relay
// lists of production users were once polluted with it (spec 11 §2).
const blockedRelay = "wss://relay.hostr.development"

// Allowed tells whether the relay may be contacted at all.
func (e Environment) Allowed(relayURL string) bool {
	return relayKey(relayURL) != blockedRelay || relayKey(e.HostrRelay) == blockedRelay
}

// relayKey maps the spellings of one relay URL to one text, for comparison only.
func relayKey(relayURL string) string {
	relayURL = strings.TrimSpace(relayURL)
	parsed, err := url.Parse(relayURL)
	if err != nil || parsed.Host == "" {
		return relayURL
	}
	scheme, host := strings.ToLower(parsed.Scheme), strings.ToLower(parsed.Host)
	if scheme == "wss" {
		host = strings.TrimSuffix(host, ":443")
	} else if scheme == "ws" {
		host = strings.TrimSuffix(host, ":80")
	}
	key := scheme + "://" + host + strings.TrimRight(parsed.EscapedPath(), "/")
	if parsed.RawQuery != "" {
		key += "?" + parsed.RawQuery
	}
	return key
}

// names lists the environments with their aliases, development first.
var names = []struct {
	canonical string
	aliases   []string
}{
	{"development", []string{"dev", "local"}},
	{"test", nil},
	{"staging", nil},
	{"production", []string{"prod"}},
}

//go:embed facts
var factFiles embed.FS

// facts reads an embedded file with the reader of the override file, so that it is
// held to the same rules. The files are part of the binary: a mistake in one is a
// mistake of ours, and a test reads them all.
func facts(name string) Environment {
	data, err := factFiles.ReadFile("facts/" + name + ".json")
	if err != nil {
		panic(err)
	}
	root, err := parseJSON(data)
	if err != nil {
		panic(fmt.Sprintf("facts of %s: %v", name, err))
	}
	r := &reader{source: "facts of " + name}
	var replaced Overrides
	read := Environment{Name: name}
	r.object(root, "", append(replaced.fields(r),
		field{name: "appName", required: true, read: func(v value, path string) { read.AppName = r.text(v, path) }},
		field{name: "appUrl", required: true, read: func(v value, path string) { read.AppURL = r.text(v, path) }},
	))
	if err := r.err(); err != nil {
		panic(err)
	}
	return read.Apply(replaced)
}
