package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/runtime"
	"hostr-daemon/internal/sandbox"
)

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"hostr-daemon": main})
}

// leakChecked fails tests that leave goroutines behind.
type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	code := m.M.Run()
	if code != 0 {
		return code
	}
	if err := goleak.Find(goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// patience bounds every wait of these tests.
const patience = time.Minute

func startMarket(t testing.TB, options sandbox.Options) *sandbox.Market {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	market, err := sandbox.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := market.Close(); err != nil {
			t.Errorf("closing the market: %v", err)
		}
	})
	return market
}

// TestScripts runs the command lines of testdata/script. Each script has a market of
// its own at hand: $CONFIG is its override file, which HOSTR_DAEMON_CONFIG names too,
// $HOST and $HOSTNAME are one of its hosts, whom the request in $WORK/sign-in signs in,
// $LISTING and $OTHERLISTING are anchors of this and another host's listings,
// $NEWLISTING that of one under the name "garden", $PICTURE is an image. The commands beside those of testscript:
//
//	exits CODE program args…   run the program, which must end with the code
//	market FAULT               break the market: relay-down, or geocoder-down
//	hold                       be another daemon on $STATE until the end
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup:               setUp,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "market": breakMarket, "hold": hold,
		},
	})
}

type marketKey struct{}

func setUp(env *testscript.Env) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	market, err := sandbox.Start(ctx, sandbox.Options{Listings: 12, Seed: 1})
	if err != nil {
		return err
	}
	env.Defer(func() { _ = market.Close() })
	config, state := filepath.Join(env.WorkDir, "market.json"), filepath.Join(env.WorkDir, "state")
	if err := market.WriteConfig(config); err != nil {
		return err
	}
	signIn := `{"id":"1","method":"completeOAuthNsec","params":{"requestId":"script","nsec":"` + market.Hosts[0].NSec + `"}}`
	if err := os.WriteFile(filepath.Join(env.WorkDir, "sign-in"), []byte(signIn+"\n"), 0o600); err != nil {
		return err
	}
	env.Values[marketKey{}] = market
	env.Setenv("CONFIG", config)
	env.Setenv("STATE", state)
	env.Setenv("RELAY", market.RelayURL)
	env.Setenv("HOST", market.Hosts[0].NPub)
	env.Setenv("HOSTNAME", market.Hosts[0].Name)
	env.Setenv("LISTING", market.Listings[0].Anchor)
	env.Setenv("OTHERLISTING", market.Listings[1].Anchor)
	env.Setenv("NEWLISTING", "30402:"+market.Hosts[0].PublicKey+":garden")
	env.Setenv("PICTURE", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==")
	env.Setenv("GORACE", "atexit_sleep_ms=0") // a race-built child would otherwise sleep a second at its end
	env.Setenv("HOSTR_DAEMON_ENV", "test")
	env.Setenv("HOSTR_DAEMON_CONFIG", config)
	env.Setenv("HOSTR_STATE_DIR", state)
	return nil
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	err = ts.Exec(args[1], args[2:]...)
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

func breakMarket(ts *testscript.TestScript, _ bool, args []string) {
	market, _ := ts.Value(marketKey{}).(*sandbox.Market)
	switch {
	case len(args) != 1:
		ts.Fatalf("usage: market FAULT")
	case args[0] == "relay-down":
		market.Relay.Stop()
	case args[0] == "geocoder-down":
		market.Geocoder.Switch.Break(sandbox.HTTPFaults{Status: 503})
	default:
		ts.Fatalf("there is no fault %s", args[0])
	}
}

func hold(ts *testscript.TestScript, _ bool, _ []string) {
	state := runtime.OpenState(context.Background(), runtime.StateOptions{
		Dir: ts.Getenv("STATE"), Environment: "test", Logger: zerolog.Nop(),
	})
	ts.Defer(func() { ts.Check(state.Close()) })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := state.Store(ctx)
	ts.Check(err)
}
