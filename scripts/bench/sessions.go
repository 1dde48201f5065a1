package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// openSessions is how many accounts are signed in at once.
const openSessions = 100

func measureSessions(ctx context.Context, dir, binary string) error {
	title(fmt.Sprintf("Sessions: a sign-in by Nostr Connect, and %d accounts at once", openSessions))
	market, err := sandbox.Start(ctx, sandbox.Options{Listings: 1, Guests: openSessions + 1})
	if err != nil {
		return err
	}
	defer market.Close()
	config := filepath.Join(dir, "sessions.json")
	if err := market.WriteConfig(config); err != nil {
		return err
	}
	if err := os.Setenv("HOSTR_CLI_ALLOW_INSECURE_STORAGE", "1"); err != nil { // as the bridge does
		return err
	}
	if err := measureSignIn(ctx, binary, config, market); err != nil {
		return fmt.Errorf("signing in by Nostr Connect: %w", err)
	}
	state, err := os.MkdirTemp(dir, "sessions-")
	if err != nil {
		return err
	}
	arguments := []string{"--stdio", "--env", "development", "--config", config, "--state-dir", state}
	people := market.Guests[:openSessions]
	if err := measureOpenSessions(ctx, binary, arguments, market, people); err != nil {
		return fmt.Errorf("signing %d accounts in: %w", openSessions, err)
	}
	if err := measureRestore(ctx, binary, arguments, people); err != nil {
		return fmt.Errorf("restoring %d accounts: %w", openSessions, err)
	}
	return nil
}

// measureSignIn counts what one sign-in costs the relay and the signer, from the
// first request to the answer that the account is signed in. The signer's own
// messages to the relay count too.
func measureSignIn(ctx context.Context, binary, config string, market *sandbox.Market) error {
	daemon, err := startDaemon(ctx, binary, "--config", config)
	if err != nil {
		return err
	}
	phone, err := signerapp.New(signerapp.Options{PrivateKey: market.Guests[openSessions].PrivateKey, Logger: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer phone.Close()
	before, begin := market.Relay.Counters(), time.Now()
	shown, err := daemon.signInStep(`{"id":"1","method":"startOAuthNostrConnect","params":{"requestId":"r"}}`)
	if err != nil {
		return err
	}
	row("spawned to the code to scan", "%.1f ms", milliseconds(time.Since(begin)))
	begin = time.Now()
	if err := phone.Scan(ctx, shown.NostrConnect); err != nil {
		return err
	}
	if _, err := daemon.signInStep(`{"id":"2","method":"completeOAuthNostrConnect","params":{"requestId":"r"}}`); err != nil {
		return err
	}
	after, requests := market.Relay.Counters(), phone.Count("")
	row("scanned to signed in", "%.1f ms", milliseconds(time.Since(begin)))
	row("signer requests until signed in", "%d", requests)
	row("relay messages, both sides' (least possible: 2 REQ, 3 EVENT)", "%d REQ, %d EVENT, %d AUTH, %d CLOSE, %d connections",
		after.REQs-before.REQs, after.EVENTs-before.EVENTs, after.AUTHs-before.AUTHs, after.CLOSEs-before.CLOSEs, after.Connections-before.Connections)
	return daemon.stop()
}

func measureOpenSessions(ctx context.Context, binary string, arguments []string, market *sandbox.Market, people []sandbox.Person) error {
	daemon, err := start(ctx, binary, arguments...)
	if err != nil {
		return err
	}
	if _, err := daemon.ask(`{"id":"0","method":"callAction","params":{"action":"hostr.session.status","input":{}}}`); err != nil {
		return err
	}
	memory, files, before := daemon.residentMiB(), daemon.openFiles(), market.Relay.Counters()
	begin := time.Now()
	for i, person := range people {
		if _, err := daemon.signInStep(fmt.Sprintf(`{"id":"%d","method":"completeOAuthNsec","params":{"requestId":"r","nsec":"%s"}}`, i+1, person.NSec)); err != nil {
			return err
		}
	}
	row("signing in by nsec, one after another", "%.1f ms each", milliseconds(time.Since(begin))/float64(len(people)))
	// Each account authenticates its connection and backs its seed up, but for the one
	// guest without a profile.
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := market.Relay.WaitFor(waiting, func(c sandbox.Counters) bool {
		return c.AUTHs-before.AUTHs >= len(people) && c.EVENTs-before.EVENTs >= len(people)-1
	}); err != nil {
		return err
	}
	if _, err := daemon.pipeline(len(people), func(i int) string { return statusFrame(i, people[i].PublicKey) }); err != nil {
		return err
	}
	n := float64(len(people))
	row("memory, resident", "%.1f MiB, %.2f MiB per session", daemon.residentMiB(), (daemon.residentMiB()-memory)/n)
	row("open files", "%d, %.2f per session", daemon.openFiles(), float64(daemon.openFiles()-files)/n)
	row("relay connections", "%.2f per session", float64(market.Relay.Counters().Open-before.Open)/n)
	begin = time.Now()
	if err := daemon.stop(); err != nil {
		return err
	}
	row("end of input to exit", "%.1f ms", milliseconds(time.Since(begin)))
	return nil
}

func measureRestore(ctx context.Context, binary string, arguments []string, people []sandbox.Person) error {
	begin := time.Now()
	daemon, err := start(ctx, binary, arguments...)
	if err != nil {
		return err
	}
	if _, err := daemon.pipeline(len(people), func(i int) string { return statusFrame(i, people[i].PublicKey) }); err != nil {
		return err
	}
	row(fmt.Sprintf("spawn to %d answered session.status", len(people)), "%.1f ms", milliseconds(time.Since(begin)))
	return daemon.stop()
}

func statusFrame(i int, pubkey string) string {
	return fmt.Sprintf(`{"id":"%d","method":"callAction","params":{"pubkey":"%s","action":"hostr.session.status","input":{}}}`, i, pubkey)
}

// signIn is what an answer of the sign-in methods holds.
type signIn struct {
	NostrConnect string `json:"nostrconnect"`
	Pubkey       string `json:"pubkey"`
}

// signInStep sends a frame whose answer must be a success.
func (c *child) signInStep(frame string) (signIn, error) {
	line, err := c.ask(frame)
	if err != nil {
		return signIn{}, err
	}
	var answer struct {
		Result struct {
			OK   bool   `json:"ok"`
			Data signIn `json:"data"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		return signIn{}, err
	}
	if !answer.Result.OK {
		return signIn{}, errors.New("the daemon refused: " + strings.TrimSpace(line))
	}
	return answer.Result.Data, nil
}

// openFiles counts the child's open files, sockets among them; 0 where the system
// does not tell.
func (c *child) openFiles() int {
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(c.command.Process.Pid), "fd"))
	if err != nil {
		return 0
	}
	return len(entries)
}
