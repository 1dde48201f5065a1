package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"hostr-daemon/internal/runtime"
)

// parse reads a command line as run does, and returns the command with it.
func parse(t *testing.T, arguments ...string) (parsed commandLine, command string, err error) {
	t.Helper()
	parser, err := kong.New(&parsed, kong.Name("hostr-daemon"), kong.Vars{"version": "0"}, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	context, err := parser.Parse(positionalsLast(parser.Model, arguments))
	if err != nil {
		return parsed, "", err
	}
	return parsed, strings.Fields(context.Command())[0], nil
}

// The bridge prepends a path when the command's name is not one of its four, and
// options count wherever they stand (spec 10 §1.1).
func TestPositionalsMayStandAnywhere(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		env, stateDir string
		ignored       []string
	}{
		"":                      {env: "production"},
		"--stdio":               {env: "production"},
		"--no-stdio --env test": {env: "test"},
		"--env=test":            {env: "test"},
		"bin/hostr_daemon.dart --stdio --env staging": {env: "staging", ignored: []string{"bin/hostr_daemon.dart"}},
		"--stdio bin/hostr_daemon.dart --env staging": {env: "staging", ignored: []string{"bin/hostr_daemon.dart"}},
		"--stdio --env staging bin/hostr_daemon.dart": {env: "staging", ignored: []string{"bin/hostr_daemon.dart"}},
		"a --env test b --state-dir d c":              {env: "test", stateDir: "d", ignored: []string{"a", "b", "c"}},
		"a --env test b --state-dir=d call":           {env: "test", stateDir: "d", ignored: []string{"a", "b", "call"}},
		"--env test --env staging":                    {env: "staging"},
		"- --env test":                                {env: "test", ignored: []string{"-"}},
		"serve x --env test y":                        {env: "test", ignored: []string{"x", "y"}},
		"a -- --env test":                             {env: "production", ignored: []string{"a", "--env", "test"}},
		"--env test serve":                            {env: "test"},
	} {
		parsed, command, err := parse(t, strings.Fields(line)...)
		if err != nil || command != "serve" {
			t.Errorf("%q: command %q, %v", line, command, err)
			continue
		}
		if parsed.Env != want.env || parsed.StateDir != want.stateDir {
			t.Errorf("%q: environment %q and state directory %q", line, parsed.Env, parsed.StateDir)
		}
		if diff := cmp.Diff(want.ignored, parsed.Serve.Ignored); diff != "" {
			t.Errorf("%q: ignored words (-want +got):\n%s", line, diff)
		}
	}
}

func TestCommandsTakeTheirWordsInOrder(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		command, action, as string
		input               []string
		json                bool
	}{
		"call hostr.listings.search limit=3":         {command: "call", action: "hostr.listings.search", input: []string{"limit=3"}},
		"--env test call a x=1 --json y=2":           {command: "call", action: "a", input: []string{"x=1", "y=2"}, json: true},
		"call a --as someone x=1 --env test":         {command: "call", action: "a", as: "someone", input: []string{"x=1"}},
		"call --json a {\"limit\":3}":                {command: "call", action: "a", input: []string{`{"limit":3}`}, json: true},
		"call a -- -x=1 --json":                      {command: "call", action: "a", input: []string{"-x=1", "--json"}},
		"describe":                                   {command: "describe"},
		"--relay wss://relay.example.org describe a": {command: "describe"},
		"doctor --env staging":                       {command: "doctor"},
	} {
		parsed, command, err := parse(t, strings.Fields(line)...)
		if err != nil || command != want.command || parsed.Call.Action != want.action || parsed.Call.As != want.as || parsed.Call.JSON != want.json {
			t.Errorf("%q: command %q, call %+v, %v", line, command, parsed.Call, err)
		}
		if diff := cmp.Diff(want.input, parsed.Call.Input); diff != "" {
			t.Errorf("%q: input (-want +got):\n%s", line, diff)
		}
	}
}

func TestSenselessCommandLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"--bogus":            "unknown flag --bogus",
		"a --bogus b":        "unknown flag --bogus",
		"-x":                 "unknown flag -x",
		"--env":              "--env",
		"call a x=1 --as":    "--as",
		"serve a --env":      "--env",
		"a --state-dir":      "--state-dir",
		"--relay --env test": "--relay",
		"call":               "<action>",
		"call a --as":        "--as",
		"describe a b":       "unexpected argument b",
		"doctor a":           "unexpected argument a",
		"--stdio=perhaps":    "perhaps",
		"--as someone":       "unknown flag --as",
	} {
		if _, command, err := parse(t, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: command %q, %v; want %q", line, command, err, want)
		}
	}
}

// Every option has its variable in the help, or says how it is else given.
func TestHelpNamesTheVariables(t *testing.T) {
	t.Parallel()
	var help strings.Builder
	var parsed commandLine
	parser, err := kong.New(&parsed, kong.Name("hostr-daemon"), kong.Vars{"version": "0"}, kong.Writers(&help, &help), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = parser.Parse([]string{"--help"})
	for _, variable := range []string{
		"HOSTR_DAEMON_ENV", "HOSTR_DAEMON_RELAY", "HOSTR_STATE_DIR", "HOSTR_DAEMON_CONFIG",
		"HOSTR_CLI_ALLOW_INSECURE_STORAGE", "HOSTR_DAEMON_SECRETS_KEY_FILE",
		"HOSTR_ALLOW_LOCAL_IMAGES", "HOSTR_ALLOW_PRIVATE_IMAGE_HOSTS",
	} {
		if !strings.Contains(help.String(), "$"+variable) {
			t.Errorf("help does not name %s", variable)
		}
	}
}

func TestBlankVariablesAreNotSet(t *testing.T) {
	t.Setenv("HOSTR_DAEMON_ENV", " ")
	t.Setenv("HOSTR_DAEMON_RELAY", "wss://relay.example.org")
	var parsed commandLine
	parser, err := kong.New(&parsed, kong.Vars{"version": "0"})
	if err != nil {
		t.Fatal(err)
	}
	dropBlankVariables(parser.Model)
	if _, err := parser.Parse(nil); err != nil || parsed.Env != "production" || parsed.Relay != "wss://relay.example.org" {
		t.Errorf("environment %q, relay %q, %v", parsed.Env, parsed.Relay, err)
	}
	if _, set := os.LookupEnv("HOSTR_DAEMON_ENV"); set {
		t.Error("a variable without a value is still set")
	}
}

// Only the operator allows images that are not on the public web: by option or by a
// variable that is exactly 1.
func TestImageOptions(t *testing.T) {
	for _, test := range []struct {
		line, files, hosts string
		want               runtime.ImageOptions
	}{
		{"", "", "", runtime.ImageOptions{}},
		{"--allow-local-images", "", "", runtime.ImageOptions{AllowFiles: true}},
		{"--allow-private-image-hosts", "0", "", runtime.ImageOptions{AllowPrivateHosts: true}},
		{"--env staging", "1", "", runtime.ImageOptions{AllowFiles: true}},
		{"", "", "1", runtime.ImageOptions{AllowPrivateHosts: true}},
		{"", "true", "yes", runtime.ImageOptions{}},
	} {
		t.Setenv("HOSTR_ALLOW_LOCAL_IMAGES", test.files)
		t.Setenv("HOSTR_ALLOW_PRIVATE_IMAGE_HOSTS", test.hosts)
		parsed, _, err := parse(t, strings.Fields(test.line)...)
		if got := parsed.images(); err != nil || got != test.want {
			t.Errorf("%q with %q and %q: %+v, %v; want %+v", test.line, test.files, test.hosts, got, err, test.want)
		}
	}
}
