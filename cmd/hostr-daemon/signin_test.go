package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// person is somebody at a terminal, with a market, a state directory and a phone that
// signs.
type person struct {
	sandbox.Person
	phone   *signerapp.App
	options []string
}

func newPerson(t *testing.T) *person {
	t.Helper()
	market := startMarket(t, sandbox.Options{Listings: 1})
	config := filepath.Join(t.TempDir(), "market.json")
	if err := market.WriteConfig(config); err != nil {
		t.Fatal(err)
	}
	guest := market.Guests[0]
	phone, err := signerapp.New(signerapp.Options{PrivateKey: guest.PrivateKey, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(phone.Close)
	return &person{Person: guest, phone: phone, options: []string{
		"--env", "test", "--config", config, "--state-dir", filepath.Join(t.TempDir(), "state"), "--allow-insecure-file-secrets",
	}}
}

// command is a command line of hostr-daemon, in an environment without its variables.
func (p *person) command(ctx context.Context, t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, executable)
	command.Args = append(append([]string{"hostr-daemon"}, arguments...), p.options...) // TestMain runs what it is called
	return command
}

// run runs a command line to its end.
func (p *person) run(t *testing.T, arguments ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := p.command(ctx, t, arguments...)
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), log.String(), command.ProcessState.ExitCode()
}

// signIn runs a command line that shows a code on shown, has the phone scan it, and
// returns what came before and after, when the command has ended well.
func (p *person) signIn(t *testing.T, shown func(command *exec.Cmd) (io.ReadCloser, error), arguments ...string) (before, after string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := p.command(ctx, t, arguments...)
	stream, err := shown(command)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stream)
	for !strings.HasPrefix(lastLine(before), "nostrconnect://") {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the code did not show: %v", err)
		}
		before += line
	}
	if err := p.phone.Scan(ctx, strings.TrimSpace(lastLine(before))); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err := errors.Join(err, command.Wait()); err != nil {
		t.Fatalf("signing in: %v", err)
	}
	return before, string(rest)
}

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// A person signs in with the phone, and from then on every command acts as them.
func TestSigningInAtATerminal(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	before, after := p.signIn(t, (*exec.Cmd).StdoutPipe, "call", "hostr.session.connect", "regenerate=true", "--as", "laptop")
	if strings.Count(before, "█") < 100 || !strings.HasPrefix(before, "Sign in to Hostr\n") || strings.Contains(before, "\x1b") {
		t.Errorf("the code is shown as\n%s", before)
	}
	want := "Signed in as " + p.NPub + " (its signer app signs).\nTo act as this account:\n  hostr-daemon call ACTION --as " + p.PublicKey + "\n"
	if after != want {
		t.Errorf("after the approval: %q, want %q", after, want)
	}

	for _, as := range []string{p.PublicKey, p.NPub} {
		stdout, stderr, code := p.run(t, "call", "hostr.session.status", "--as", as)
		if code != 0 || stdout != "Signed in as "+p.PublicKey+".\n" {
			t.Errorf("--as %s: exit code %d, %q, %q", as, code, stdout, stderr)
		}
	}
	stdout, stderr, code := p.run(t, "call", "hostr.profile.show", "--as", p.PublicKey, "--json")
	if code != 0 || !strings.Contains(stdout, p.PublicKey) || !strings.Contains(stdout, p.Name) {
		t.Errorf("the profile of %s: exit code %d, %q, %q", p.Name, code, stdout, stderr)
	}
	for _, as := range [][]string{{"--as", "laptop"}, nil} {
		_, stderr, code := p.run(t, append([]string{"call", "hostr.profile.show"}, as...)...)
		if code != 1 || !strings.HasPrefix(stderr, "auth_required:") || !strings.Contains(stderr, "hint: signed in here: --as\n  "+p.NPub) {
			t.Errorf("as %q, which is no account: exit code %d, %q", as, code, stderr)
		}
	}
	if stdout, _, code := p.run(t, "call", "hostr.session.status"); code != 0 || !strings.HasPrefix(stdout, "Signed in here:\n  "+p.NPub+"\n") {
		t.Errorf("the status of nobody in particular: exit code %d, %q", code, stdout)
	}
	stdout, _, code = p.run(t, "call", "hostr.session.connect", "wait=true", "--as", p.PublicKey)
	if code != 0 || stdout != want {
		t.Errorf("who is signed in needs no code: exit code %d, %q", code, stdout)
	}
	p.signOut(t)
	stdout, _, _ = p.run(t, "call", "hostr.session.status", "--as", p.PublicKey)
	if !strings.HasPrefix(stdout, "This account is not signed in here.\nNobody is signed in here.") {
		t.Errorf("after signing out: %q", stdout)
	}
}

// signOut writes the line that the README gives.
func (p *person) signOut(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := p.command(ctx, t)
	command.Stdin = strings.NewReader(`{"id":"1","method":"logoutSession","params":{"pubkey":"` + p.PublicKey + `"}}` + "\n")
	stdout, err := command.Output()
	if err != nil || !strings.Contains(string(stdout), `"signedOut":true`) {
		t.Errorf("signing out: %q, %v", stdout, err)
	}
}

// The doctor tells of the account while its phone answers, and when it is off.
func TestDoctorTellsOfAccounts(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.signIn(t, (*exec.Cmd).StdoutPipe, "call", "hostr.session.connect", "wait=true")
	account := p.NPub[:12] + "…" + p.NPub[len(p.NPub)-6:]
	stdout, _, code := p.run(t, "doctor")
	if line := lineWith(stdout, account); code != 0 || !strings.Contains(line, " ok ") || !strings.HasSuffix(line, "remote signer") {
		t.Errorf("exit code %d with the phone on:\n%s", code, stdout)
	}
	p.phone.Offline()
	stdout, _, code = p.run(t, "doctor")
	if line := lineWith(stdout, account); code != 0 || !strings.Contains(line, "not now") || !strings.Contains(line, "Open the signer app") {
		t.Errorf("exit code %d with the phone off:\n%s", code, stdout)
	}
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return strings.TrimSuffix(line, "\n")
		}
	}
	return ""
}

// With --json stdout is the result alone.
func TestSigningInForAProgram(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	var stdout bytes.Buffer
	_, after := p.signIn(t, func(command *exec.Cmd) (io.ReadCloser, error) {
		command.Stdout = &stdout
		return command.StderrPipe()
	}, "call", "--json", "hostr.session.connect", "wait=true")
	want := "{\n  \"authenticated\": true,\n  \"pubkey\": \"" + p.PublicKey + "\",\n  \"credentialType\": \"bunker\"\n}\n"
	if stdout.String() != want {
		t.Errorf("stdout %q, want %q", stdout.String(), want)
	}
	if after != "Waiting up to 3 minutes for the signer app to approve; Ctrl-C gives up.\n" {
		t.Errorf("after the code stderr has %q", after)
	}
}

// A code is never shown by a command that does not wait for its approval; one that
// nobody approves is given up in time.
func TestSignInCodesThatEnd(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	for _, wait := range []string{"wait=true", "wait=false", "regenerate=false"} {
		stdout, stderr, code := p.run(t, "call", "hostr.session.connect", wait, "timeoutSeconds=1")
		if code != 1 || !strings.Contains(stdout, "\nnostrconnect://") || !strings.HasPrefix(stderr, "Waiting up to 1 second ") ||
			!strings.Contains(stderr, "\nnostr_connect_timeout: The signer has not approved the sign-in within 1 seconds.") || !strings.Contains(stderr, "for a new code") {
			t.Errorf("%s: exit code %d, %d bytes, %q", wait, code, len(stdout), stderr)
		}
	}
	if _, stderr, code := p.run(t, "call", "hostr.session.connect", "wait=perhaps"); code != 1 || !strings.HasPrefix(stderr, "invalid_input:") {
		t.Errorf("a senseless input: exit code %d, %q", code, stderr)
	}
	if _, stderr, code := p.run(t, "call", "hostr.session.status", "--as", p.NPub+"x"); code != 2 || !strings.Contains(stderr, "--as is no npub") {
		t.Errorf("a broken npub: exit code %d, %q", code, stderr)
	}
}
