package environment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"hostr-daemon/internal/fault"
)

// Overrides are the facts an override file replaces, each as a whole; nil keeps the
// environment's (spec 11 §3.6).
type Overrides struct {
	HostrRelay                              *string
	BootstrapRelays, Blossom, EscrowPubkeys *[]string
	GeocoderURL                             *string
	EVM                                     *EVMConfig
}

// ParseOverrides reads the JSON of an override file. The source names it in
// messages. The error is a *fault.Error whose details are Problems when the JSON
// itself is sound.
func ParseOverrides(source string, data []byte) (Overrides, error) {
	root, err := parseJSON(data)
	if err != nil {
		return Overrides{}, fault.New(fault.UnexpectedError, "The %s %w.", source, err)
	}
	r := &reader{source: source}
	var read Overrides
	r.object(root, "", read.fields(r))
	if err := r.err(); err != nil {
		return Overrides{}, err
	}
	return read, nil
}

// ParseEVMConfig reads JSON of the shape of evmConfig, as ParseOverrides does.
func ParseEVMConfig(source string, data []byte) (EVMConfig, error) {
	root, err := parseJSON(data)
	if err != nil {
		return EVMConfig{}, fault.New(fault.UnexpectedError, "The %s %w.", source, err)
	}
	r := &reader{source: source}
	read := r.evm(root, "")
	if err := r.err(); err != nil {
		return EVMConfig{}, err
	}
	return read, nil
}

func (o *Overrides) fields(r *reader) []field {
	same := func(text string) string { return text }
	texts := func(into **[]string, check, key func(string) string) func(value, string) {
		return func(v value, path string) {
			read := r.texts(v, path, check, key)
			*into = &read
		}
	}
	return []field{
		{name: "hostrRelay", read: func(v value, path string) {
			read := r.checked(v, path, checkRelayURL)
			o.HostrRelay = &read
		}},
		{name: "bootstrapRelays", read: texts(&o.BootstrapRelays, checkRelayURL, relayKey)},
		{name: "bootstrapBlossom", read: texts(&o.Blossom, checkHTTPURL, same)},
		{name: "bootstrapEscrowPubkeys", read: func(v value, path string) {
			read := r.texts(v, path, checkPubkey, strings.ToLower)
			for i, pubkey := range read {
				read[i] = strings.ToLower(pubkey)
			}
			o.EscrowPubkeys = &read
		}},
		{name: "geocoderUrl", read: func(v value, path string) {
			read := r.checked(v, path, checkHTTPURL)
			o.GeocoderURL = &read
		}},
		{name: "evmConfig", read: func(v value, path string) {
			read := r.evm(v, path)
			o.EVM = &read
		}},
	}
}

// maxFileBytes is far above any real override file.
const maxFileBytes = 1 << 20

// readFile reads a configuration file whole. Messages name it as given. Opening a
// pipe or a device could wait for ever, so only a regular file will do.
func readFile(source, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileProblem(source, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fault.New(fault.UnexpectedError, "The %s is not a regular file: name a JSON file.", source)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fileProblem(source, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, fileProblem(source, err)
	}
	if len(data) > maxFileBytes {
		return nil, fault.New(fault.UnexpectedError, "The %s is larger than 1 MiB, so it is no configuration: name another file.", source)
	}
	return data, nil
}

func fileProblem(source string, err error) error {
	reason := err
	var path *fs.PathError
	if errors.As(err, &path) {
		reason = path.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.UnexpectedError, "The %s does not exist: correct its name or create it.", source).WithHint(lookHint)
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.UnexpectedError, "The %s may not be read by this user: change its owner or mode.", source)
	}
	return fault.New(fault.UnexpectedError, "The %s cannot be read: %w.", source, reason)
}

func fileSource(what, path string) string { return fmt.Sprintf("%s %q", what, path) }
