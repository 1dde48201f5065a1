package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// printHelp leaves the options of all commands to the help without a command: beside
// them a command's own would hardly be seen.
func printHelp(options kong.HelpOptions, context *kong.Context) error {
	selected := context.Selected()
	if selected == nil || selected.Name == "serve" {
		return kong.DefaultHelpPrinter(options, context)
	}
	for _, flag := range context.Model.Flags {
		flag.Hidden = flag.Name != "help"
	}
	if err := kong.DefaultHelpPrinter(options, context); err != nil {
		return err
	}
	_, err := fmt.Fprintln(context.Stdout, "\nOptions of all commands, --env and --state-dir among them: hostr-daemon --help")
	return err
}
