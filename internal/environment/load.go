package environment

import (
	"os"
	"strings"

	"hostr-daemon/internal/fault"
)

// Options say which environment to load and what overrides its facts.
type Options struct {
	// Name is the environment or an alias of it.
	Name string
	// Relay is --relay: it becomes the Hostr relay and the only bootstrap relay.
	// Blank means not given.
	Relay string
	// ConfigFile is --config; blank means HOSTR_DAEMON_CONFIG, if that is set.
	ConfigFile string
	// Getenv reads the process environment; nil means os.Getenv.
	Getenv func(string) string
}

const (
	configVariable    = "HOSTR_DAEMON_CONFIG"
	evmConfigVariable = "HOSTR_EVM_CONFIG"

	rereadHint  = "Mend the file; the next request reads it again."
	lookHint    = "The next request looks for it again."
	restartHint = "Mend it and start hostr-daemon again."
)

// Load returns the environment with all overrides, the strongest last: the override
// file, --relay, HOSTR_EVM_CONFIG, HOSTR_BUNDLER_URL, HOSTR_PIMLICO_API_KEY (spec 11
// §3.6). It reads files anew each time, so a mended file needs no restart.
//
// An *UnknownNameError is fatal at start. Any other error is a *fault.Error about an
// override; the environment beside it then has the right names and the facts the
// overrides left, and must not be worked with.
func Load(o Options) (Environment, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	loaded, err := Resolve(o.Name)
	if err != nil {
		return Environment{}, err
	}
	loaded.AllowSelfSigned = o.Getenv("HOSTR_CLI_ACCEPT_SELF_SIGNED_DEV_CERTS") == "1" ||
		o.Getenv("HOSTR_ACCEPT_SELF_SIGNED_DEV_CERTS") == "1"
	for _, apply := range []func(*Environment) error{o.applyFile, o.applyRelay, o.applyEVMConfig, o.applyBundler} {
		if err := apply(&loaded); err != nil {
			return loaded, err
		}
	}
	return loaded, nil
}

func (o Options) applyFile(e *Environment) error {
	path := o.ConfigFile
	if strings.TrimSpace(path) == "" {
		path = o.Getenv(configVariable)
	}
	if strings.TrimSpace(path) == "" {
		return nil
	}
	source := fileSource("override file", path)
	data, err := readFile(source, path)
	if err != nil {
		return unread(err)
	}
	overrides, err := ParseOverrides(source, data)
	if err != nil {
		return fault.From(err).WithHint(rereadHint)
	}
	*e = e.Apply(overrides)
	return nil
}

// unread tells what to do about a file that could not be read: one that is not there
// cannot be mended.
func unread(err error) error {
	if problem := fault.From(err); problem.Hint != "" {
		return problem
	}
	return fault.From(err).WithHint(rereadHint)
}

func (o Options) applyRelay(e *Environment) error {
	relay := strings.TrimSpace(o.Relay)
	if relay == "" {
		return nil
	}
	if problem := checkRelayURL(relay); problem != "" {
		return fault.New(fault.UnexpectedError, "The relay given with --relay is unusable: %s.", problem).
			At("--relay").WithHint("For example wss://relay.example.org.")
	}
	*e = e.Apply(Overrides{HostrRelay: &relay, BootstrapRelays: &[]string{relay}})
	return nil
}

// applyEVMConfig takes JSON or the name of a file with it.
func (o Options) applyEVMConfig(e *Environment) error {
	setting := strings.TrimSpace(o.Getenv(evmConfigVariable))
	if setting == "" {
		return nil
	}
	source, data, hint := "variable "+evmConfigVariable, []byte(setting), restartHint
	switch {
	case strings.ContainsAny(setting, "{[\""):
	case strings.Contains(setting, "://"):
		return fault.New(fault.UnexpectedError, "The %s holds a URL: expected JSON or the name of a JSON file.", source).At(evmConfigVariable).WithHint(restartHint)
	default:
		source, hint = fileSource("file named by "+evmConfigVariable, setting), rereadHint
		var err error
		if data, err = readFile(source, setting); err != nil {
			return unread(err)
		}
	}
	config, err := ParseEVMConfig(source, data)
	if err != nil {
		return fault.From(err).WithHint(hint)
	}
	e.EVM = config
	return nil
}

func (o Options) applyBundler(e *Environment) error {
	if bundler := strings.TrimSpace(o.Getenv(bundlerURLVariable)); bundler != "" {
		replaced, err := e.EVM.withBundlerURL(bundler)
		if err != nil {
			return err
		}
		e.EVM = replaced
	}
	if key := strings.TrimSpace(o.Getenv(pimlicoKeyVariable)); key != "" {
		e.EVM = e.EVM.withPimlicoKey(key)
	}
	return nil
}
