package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/doctor"
	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/runtime"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
	"hostr-daemon/internal/secrets"
)

// scene is a market with a state directory in which accounts are signed in.
type scene struct {
	market *sandbox.Market
	dir    string
	config string
}

func newScene(t *testing.T) scene {
	t.Helper()
	s := scene{market: startMarket(t), dir: filepath.Join(t.TempDir(), "state"), config: filepath.Join(t.TempDir(), "market.json")}
	if err := s.market.WriteConfig(s.config); err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs a daemon on the scene; what it ends with matters to no test.
func (s scene) start(t *testing.T, kept secrets.Options) *runtime.Runtime {
	t.Helper()
	running, err := runtime.Start(context.Background(), runtime.Options{
		Environment: environment.Options{Name: "test", ConfigFile: s.config, Getenv: noVariables}, StateDir: s.dir, Getenv: noVariables,
		Logger: zerolog.Nop(), RelayLogger: zerolog.Nop(), Journal: zerolog.Nop(), Secrets: kept,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Close() })
	return running
}

func (s scene) examine(t *testing.T, state doctor.State, kept secrets.Options) []doctor.Finding {
	t.Helper()
	findings, err := doctor.Examine(patient(t), doctor.Config{
		Environment: facts(t, s.market.RelayURL, s.market.BlossomURL, s.market.GeocoderURL), State: state, Secrets: kept,
	})
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// phone signs a person in with a signer app.
func (s scene) phone(t *testing.T, running *runtime.Runtime, person sandbox.Person) *signerapp.App {
	t.Helper()
	app, err := signerapp.New(signerapp.Options{PrivateKey: person.PrivateKey, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	registry, err := running.Sessions(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	pending, err := registry.Connect("phone of "+person.Name, false)
	if err != nil {
		t.Fatal(err)
	}
	pending.Listen(patient(t))
	if err := app.Scan(patient(t), pending.URI()); err != nil {
		t.Fatal(err)
	}
	if _, err := pending.Wait(patient(t)); err != nil {
		t.Fatal(err)
	}
	return app
}

func signInWithKey(t *testing.T, running *runtime.Runtime, person sandbox.Person) {
	t.Helper()
	registry, err := running.Sessions(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.SignInWithKey(patient(t), secrets.NewSecret(person.NSec)); err != nil {
		t.Fatal(err)
	}
}

// accountFinding is the one about a person.
func accountFinding(t *testing.T, findings []doctor.Finding, person sandbox.Person) doctor.Finding {
	t.Helper()
	for _, finding := range findings {
		begin, end, short := strings.Cut(finding.Target, "…")
		if finding.Subject == "account" && short && strings.HasPrefix(person.NPub, begin) && strings.HasSuffix(person.NPub, end) {
			return finding
		}
	}
	t.Fatalf("there is no finding about %s in %+v", person.NPub, findings)
	return doctor.Finding{}
}

// Each account is told with its own signer: a key kept here, a phone that answers, a
// phone that is off.
func TestAccountsAndTheirSigners(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	host, online, offline := s.market.Hosts[0], s.market.Guests[0], s.market.Guests[1]
	before := s.start(t, allowFile)
	signInWithKey(t, before, host)
	awake := s.phone(t, before, online)
	s.phone(t, before, offline).Offline()
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}

	findings := s.examine(t, s.start(t, allowFile), allowFile)
	if found := accountFinding(t, findings, host); found.Err != nil || found.Detail != "local key" {
		t.Errorf("the local key: %+v", found)
	}
	if found := accountFinding(t, findings, online); found.Err != nil || found.Detail != "remote signer" {
		t.Errorf("the phone that answers: %+v", found)
	}
	found := accountFinding(t, findings, offline)
	if found.Err == nil || !strings.Contains(found.Err.Error(), "remote signer: it does not answer") || !found.Optional {
		t.Errorf("the phone that is off: %+v", found)
	}
	if got := awake.Count("get_public_key"); got != 2 { // once at sign-in
		t.Errorf("the phone was asked %d times who it signs for, want at sign-in and by doctor", got)
	}
	text, healthy := report(t, findings)
	if !healthy || !strings.Contains(text, "Open the signer app") {
		t.Errorf("healthy %v, report:\n%s", healthy, text)
	}
	wantNoSecrets(t, s.dir, fmt.Sprintf("%s %+v", text, findings), host, online, offline)
}

// wantNoSecrets looks for every private key that the people and the state have.
func wantNoSecrets(t *testing.T, dir, text string, people ...sandbox.Person) {
	t.Helper()
	kept, err := os.ReadFile(filepath.Join(dir, "test", "secrets.json"))
	if err != nil {
		t.Fatal(err)
	}
	private := regexp.MustCompile(`privateKey[\\":]+([0-9a-f]{64})`).FindAllSubmatch(kept, -1)
	if len(private) < len(people) {
		t.Fatalf("the state has %d private keys, want at least %d", len(private), len(people))
	}
	var all []string
	for _, found := range private {
		all = append(all, string(found[1]))
	}
	for _, person := range people {
		all = append(all, person.PrivateKey, person.NSec)
	}
	for _, secret := range all {
		if strings.Contains(text, secret) {
			t.Fatal("the report shows a private key")
		}
	}
}

// A phone that has become somebody else's, or refuses, does not pass.
func TestSignersThatDoNotAnswerAsTheyShould(t *testing.T) {
	t.Parallel()
	for name, behaviour := range map[string]signerapp.Behaviour{
		"refuses":          {Refuse: "Not authorized"},
		"is somebody else": {Methods: []string{"get_public_key"}, Result: strings.Repeat("ab", 32)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			before := s.start(t, allowFile)
			phone := s.phone(t, before, s.market.Guests[0])
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			phone.Behave(behaviour)
			found := accountFinding(t, s.examine(t, s.start(t, allowFile), allowFile), s.market.Guests[0])
			if found.Err == nil || !strings.Contains(found.Err.Error(), "does not answer as it should") {
				t.Errorf("finding %+v", found)
			}
		})
	}
}

// What is left of sign-ins that did not finish, and what cannot be read, is told
// without the session keys, which may be somebody's tokens.
func TestOddStoredAccounts(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	guest := s.market.Guests[0]
	identity, err := secrets.NewPrivateKeyIdentity(secrets.NewSecret(guest.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	options := allowFile
	options.StateDir, options.Environment = s.dir, "test"
	store, err := secrets.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "TOKEN-OF-A-BRIDGE"} {
		if _, err := secrets.ForSession(store, key).SignIn(patient(t), identity); err != nil {
			t.Fatal(err)
		}
	}
	unreadable := s.market.Guests[1]
	if err := store.Write(patient(t), "hostr-session/"+unreadable.PublicKey+"/auth", `["no key at all"]`); err != nil {
		t.Fatal(err)
	}
	findings := s.examine(t, s.start(t, allowFile), allowFile)
	if found := accountFinding(t, findings, guest); found.Err != nil || found.Detail != "local key, left behind by a sign-in that did not finish" {
		t.Errorf("a sign-in under another key: %+v", found)
	}
	if found := accountFinding(t, findings, unreadable); !errors.Is(found.Err, secrets.ErrUnreadableIdentity) {
		t.Errorf("an unreadable sign-in: %+v", found)
	}
	text, healthy := report(t, findings)
	if !healthy || !strings.Contains(text, "not used") || strings.Contains(text, "TOKEN") || strings.Contains(text, "no key at all") {
		t.Errorf("healthy %v, report:\n%s", healthy, text)
	}
}

// The accounts of a directory in use are its daemon's to ask.
func TestAccountsOfARunningDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	running := s.start(t, allowFile)
	phone := s.phone(t, running, s.market.Guests[0])
	findings := s.examine(t, s.start(t, allowFile), allowFile)
	wantDetail(t, findings, "accounts", "the running daemon uses them: ask it for hostr.session.status, with the account as pubkey")
	if got := phone.Count("get_public_key"); got != 1 {
		t.Errorf("the phone was asked %d times who it signs for, want once: by its daemon", got)
	}
}

// Sign-ins of a plain file that is not allowed are told where there is no other place.
func TestAccountsWithoutAPlace(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("the keyring of this system is always there")
	}
	s := newScene(t)
	t.Setenv("PATH", t.TempDir()) // without secret-tool there is no keyring
	running := s.start(t, allowFile)
	signInWithKey(t, running, s.market.Guests[0])
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	none := secrets.Options{Getenv: noVariables}
	for _, finding := range s.examine(t, s.start(t, none), none) {
		if finding.Subject != "private keys" {
			continue
		}
		if finding.Err == nil || !strings.Contains(finding.Err.Error(), "1 stored sign-ins are not seen") ||
			!strings.Contains(finding.Err.Error(), "--allow-insecure-file-secrets") {
			t.Errorf("private keys: %+v", finding)
		}
		return
	}
	t.Error("there is no finding about private keys")
}

func wantDetail(t *testing.T, findings []doctor.Finding, subject, want string) {
	t.Helper()
	for _, finding := range findings {
		if finding.Subject == subject {
			if finding.Err != nil || finding.Detail != want {
				t.Errorf("%s: %+v, want %q", subject, finding, want)
			}
			return
		}
	}
	t.Errorf("there is no finding about %s", subject)
}

// A key that does not open the secrets is told, and nothing else is hidden.
func TestAccountsBehindAMissingKey(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("a key of more than sixteen characters"), 0o600); err != nil {
		t.Fatal(err)
	}
	encrypted := secrets.Options{KeyFile: key, Getenv: noVariables}
	before := s.start(t, encrypted)
	signInWithKey(t, before, s.market.Hosts[0])
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	again := s.start(t, encrypted)
	if found := accountFinding(t, s.examine(t, again, encrypted), s.market.Hosts[0]); found.Err != nil {
		t.Errorf("with the key: %+v", found)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	findings := s.examine(t, s.start(t, allowFile), allowFile)
	wantFinding(t, findings, "accounts", "no key was given to open it")
	wantFinding(t, findings, "private keys", "no key was given to open it")
	wantFinding(t, findings, "Hostr relay", "")
}

// emptyKeyring acts as secret-tool does while nothing is kept, or with one account in
// the keyring.
const emptyKeyring = "#!/bin/sh\nexit 1\n"

func fullKeyring(person sandbox.Person) string {
	entry := "hostr-session/" + person.PublicKey + "/auth"
	return "#!/bin/sh\ncase \"$1 $5\" in\n'search ') echo 'attribute.key = " + entry + "' >&2;;\n'lookup " + entry + "') printf '[\"" + person.PrivateKey + "\"]';;\n*) exit 1;;\nesac\n"
}

// A keyring has its accounts listed; without any place nobody can sign in.
func TestAccountsInAKeyring(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("the fake keyring command is that of Linux")
	}
	s, commands := newScene(t), t.TempDir()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", commands)
	if err := os.Symlink(shell, filepath.Join(commands, "sh")); err != nil {
		t.Fatal(err)
	}
	none := secrets.Options{Getenv: noVariables}
	wantDetail(t, s.examine(t, s.start(t, none), none), "accounts", "nobody can sign in while there is no place for private keys")

	keep := func(script string) {
		if err := os.WriteFile(filepath.Join(commands, "secret-tool"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	keep(emptyKeyring)
	other := newScene(t)
	running := other.start(t, none)
	wantDetail(t, other.examine(t, running, none), "accounts", "nobody is signed in")
	guest := other.market.Guests[0]
	keep(fullKeyring(guest))
	if found := accountFinding(t, other.examine(t, running, none), guest); found.Err != nil || found.Detail != "local key" {
		t.Errorf("the account in the keyring: %+v", found)
	}

	// With the plain file it is not seen, which is told.
	third := newScene(t)
	wantDetail(t, third.examine(t, third.start(t, allowFile), allowFile), "private keys",
		"file; 1 stored sign-ins are not seen, because they rest in another place (keyring (Secret Service, through secret-tool)): hostr-daemon move-secrets --to plain-file")
}
