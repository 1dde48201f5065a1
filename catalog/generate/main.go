// Command generate writes what is made from the action catalog: the typed inputs
// of package actions, the bridge's TypeScript module and the page for people.
//
// It runs in the catalog's folder (go generate ./...) and refuses a catalog that
// breaks a rule of spec 30 §2. It knows the catalog's files and the reading
// methods of package input, and never runs as part of the daemon.
package main

import (
	"fmt"
	"os"

	"hostr-daemon/catalog/definition"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run generates in the folder it is started in.
func run() error {
	outputs, err := generate(".")
	if err != nil {
		return err
	}
	for _, output := range outputs {
		if err := os.WriteFile(output.path, output.content, 0o644); err != nil {
			return fmt.Errorf("writing what was generated: %w", err)
		}
	}
	return nil
}

// output is one generated file.
type output struct {
	// path is relative to the catalog's folder.
	path    string
	content []byte
}

// generate reads the catalog in a folder and returns the files made from it.
func generate(folder string) ([]output, error) {
	set, err := definition.Read(os.DirFS(folder))
	if err != nil {
		return nil, err
	}
	playbooks, err := os.ReadFile(folder + "/playbooks.md")
	if err != nil {
		return nil, fmt.Errorf("reading the action catalog: %w", err)
	}
	source, err := newSource(set, string(playbooks))
	if err != nil {
		return nil, err
	}
	if err := source.check(); err != nil {
		return nil, err
	}
	inputs, err := source.goInputs()
	if err != nil {
		return nil, err
	}
	module, err := source.typescriptModule()
	if err != nil {
		return nil, err
	}
	return []output{
		{"../internal/actions/input_gen.go", inputs},
		{"hostr-actions.ts", module},
		{"../docs/actions.md", source.page()},
	}, nil
}
