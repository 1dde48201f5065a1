package main

import (
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/runtime"
	"hostr-daemon/internal/secrets"
)

// Options are shared by all commands. The variables of Config and of the private keys
// are read by the packages that use them, those of the images by images.
type Options struct {
	Stdio bool   `negatable:"" default:"true" help:"Accepted for compatibility; requests always come over stdin."`
	Env   string `default:"production" env:"HOSTR_DAEMON_ENV" placeholder:"NAME" help:"Environment: development, test, staging or production."`
	Relay string `env:"HOSTR_DAEMON_RELAY" placeholder:"URL" help:"Use this relay in place of the environment's relays."`
	// Not the bridge's HOSTR_DAEMON_STATE_DIR: the bridge hands that on as an option,
	// or, with options of its own, means the daemon to stay where it was.
	StateDir string `env:"HOSTR_STATE_DIR" placeholder:"DIR" help:"Where database and secrets lie (default ~/.hostr-cli)."`
	Config   string `placeholder:"FILE" help:"JSON file that overrides facts of the environment ($$HOSTR_DAEMON_CONFIG)."`

	AllowInsecureFileSecrets bool   `negatable:"" help:"Keep private keys in a plain file (mode 0600) in the state directory in place of the keyring ($$HOSTR_CLI_ALLOW_INSECURE_STORAGE=1)."`
	SecretsKeyFile           string `placeholder:"FILE" help:"Keep private keys in a file in the state directory, encrypted with the key in FILE ($$HOSTR_DAEMON_SECRETS_KEY_FILE; or the key itself in $$HOSTR_DAEMON_SECRETS_KEY). It counts before the plain file and the keyring."`
	AllowLocalImages         bool   `negatable:"" help:"Images of listings may be files of this machine, named by whoever sends requests ($$HOSTR_ALLOW_LOCAL_IMAGES=1)."`
	AllowPrivateImageHosts   bool   `negatable:"" help:"Images of listings may be fetched from addresses in private networks, as in development and test ($$HOSTR_ALLOW_PRIVATE_IMAGE_HOSTS=1)."`

	Version kong.VersionFlag `help:"Print the version and exit."`
}

// environment is what the environment is made of.
func (o *Options) environment() environment.Options {
	return environment.Options{Name: o.Env, Relay: o.Relay, ConfigFile: o.Config, Getenv: os.Getenv}
}

// secrets is where private keys may rest.
func (o *Options) secrets() secrets.Options {
	return secrets.Options{AllowPlainFile: o.AllowInsecureFileSecrets, KeyFile: o.SecretsKeyFile, Getenv: os.Getenv}
}

// images is where images of listings may be. A variable allows with 1 alone: one with a
// slip in it must neither allow anything nor keep a child from starting.
func (o *Options) images() runtime.ImageOptions {
	return runtime.ImageOptions{
		AllowFiles:        o.AllowLocalImages || os.Getenv("HOSTR_ALLOW_LOCAL_IMAGES") == "1",
		AllowPrivateHosts: o.AllowPrivateImageHosts || os.Getenv("HOSTR_ALLOW_PRIVATE_IMAGE_HOSTS") == "1",
	}
}

// dropBlankVariables makes a variable without a value one that is not set: whoever
// starts us may pass on what it does not have. A blank option stays a mistake.
func dropBlankVariables(model *kong.Application) {
	for _, flag := range model.Flags {
		for _, name := range flag.Envs {
			if strings.TrimSpace(os.Getenv(name)) == "" {
				_ = os.Unsetenv(name) // fails for impossible names only
			}
		}
	}
}

// positionalsLast moves words that are no options behind the options, since options
// count wherever they stand: the bridge puts a stray path first (spec 10 §1.1), and
// people mix the two. Only the first word can be a command. An option at the end that
// lacks its value must not get a word for one.
func positionalsLast(model *kong.Application, arguments []string) []string {
	line := split(arguments, takingValues(model))
	var ordered []string
	if len(line.words) > 0 && isCommand(model, line.words[0]) {
		ordered, line.words = line.words[:1:1], line.words[1:]
	}
	if line.incomplete {
		return append(append(ordered, line.words...), line.options...)
	}
	ordered = append(ordered, line.options...)
	if line.ended {
		ordered = append(ordered, "--")
	}
	return append(ordered, line.words...)
}

// arguments is a command line taken apart.
type arguments struct {
	options, words []string
	// ended is set by "--", behind which everything is a word.
	ended bool
	// incomplete is set when the last option lacks its value.
	incomplete bool
}

func split(all []string, takesValue map[string]bool) arguments {
	var line arguments
	for i := 0; i < len(all); i++ {
		argument := all[i]
		switch {
		case argument == "--":
			line.ended = true
			line.words = append(line.words, all[i+1:]...)
			return line
		case argument == "-" || !strings.HasPrefix(argument, "-"):
			line.words = append(line.words, argument)
			continue
		}
		line.options = append(line.options, argument)
		if takesValue[argument] {
			i++
			if line.incomplete = i == len(all); !line.incomplete {
				line.options = append(line.options, all[i])
			}
		}
	}
	return line
}

// takingValues are the options, of all commands, whose value may be the next word.
func takingValues(model *kong.Application) map[string]bool {
	flags := slices.Clone(model.Flags)
	for _, command := range model.Children {
		flags = append(flags, command.Flags...)
	}
	takesValue := make(map[string]bool, len(flags))
	for _, flag := range flags {
		takesValue["--"+flag.Name] = !flag.IsBool()
	}
	return takesValue
}

func isCommand(model *kong.Application, word string) bool {
	return slices.ContainsFunc(model.Children, func(command *kong.Node) bool { return command.Name == word })
}
