package main

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A daemon that is started for the keyring, where nobody is signed in, says where the
// sign-ins are.
func TestServeTellsOfSignInsElsewhere(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	state := p.options[len(p.options)-2]
	if err := os.MkdirAll(filepath.Join(state, "test"), 0o700); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(state, "test", "secrets.json")
	if err := os.WriteFile(kept, []byte(`{"hostr-session/aa/auth":"[]"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.options = p.options[:len(p.options)-1] // without the plain file
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := p.command(ctx, t)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	told := ""
	for told == "" && lines.Scan() {
		if strings.Contains(lines.Text(), "secrets.elsewhere") {
			told = lines.Text()
		}
	}
	_ = input.Close()
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(told, "1 stored sign-ins are not seen") || !strings.Contains(told, kept) {
		t.Errorf("told %q", told)
	}
}
