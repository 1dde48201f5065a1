package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"hostr-daemon/internal/sandbox"
)

func measureStart(ctx context.Context, binary string, o options) error {
	title("Start: spawn to first describe answer")
	var times []time.Duration
	for range o.spawns {
		begin := time.Now()
		daemon, err := startDaemon(ctx, binary)
		if err != nil {
			return err
		}
		if _, err := daemon.ask(`{"id":"1","method":"describe"}`); err != nil {
			return fmt.Errorf("first describe: %w", err)
		}
		times = append(times, time.Since(begin))
		if err := daemon.stop(); err != nil {
			return err
		}
	}
	slices.Sort(times)
	row(fmt.Sprintf("median of %d", len(times)), "%.1f ms", milliseconds(times[len(times)/2]))
	row("slowest", "%.1f ms", milliseconds(times[len(times)-1]))
	return nil
}

func measureSmallRequests(ctx context.Context, binary string, o options) error {
	title(fmt.Sprintf("Small requests, %d pipelined, logging on", o.requests))
	node, err := exec.LookPath("node")
	if err == nil {
		echo, err := start(ctx, node, filepath.Join("scripts", "bench", "echo.mjs"))
		if err != nil {
			return err
		}
		if err := pipelined(echo, "Node line echo (readline, JSON.parse, stdout.write)", o.requests, o.requests, unknownFrame); err != nil {
			return err
		}
	} else {
		row("Node line echo", "node is not installed")
	}
	cancelFrame := func(i int) string {
		return fmt.Sprintf(`{"id":"cancel-%d","method":"cancel","params":{"requestId":"%d"}}`, i, i)
	}
	unreadLog := withoutLog(ctx)
	for _, subject := range []struct {
		ctx              context.Context
		what             string
		requests, window int
		frame            func(int) string
	}{
		{unreadLog, "daemon: unknown method, log to the null device", o.requests, o.requests, unknownFrame},
		{unreadLog, "daemon: cancel, log to the null device", o.requests, o.requests, cancelFrame},
		{ctx, "daemon: unknown method, log read here", o.requests, o.requests, unknownFrame},
		{ctx, "daemon: cancel, log read here", o.requests, o.requests, cancelFrame},
		{ctx, "daemon: describe (answers of 130 KB)", o.requests / 50, 200, func(i int) string {
			return fmt.Sprintf(`{"id":"%d","method":"describe"}`, i)
		}},
	} {
		daemon, err := startDaemon(subject.ctx, binary)
		if err != nil {
			return err
		}
		if err := pipelined(daemon, subject.what, subject.requests, subject.window, subject.frame); err != nil {
			return err
		}
	}
	return nil
}

func unknownFrame(i int) string {
	return fmt.Sprintf(`{"id":"%d","method":"noSuchMethod","params":{}}`, i)
}

func pipelined(server *child, what string, n, window int, frame func(int) string) error {
	if _, err := server.windowed(n/10, window, frame); err != nil { // warm up
		return fmt.Errorf("%s: %w", what, err)
	}
	took, err := server.windowed(n, window, frame)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	row(what, "%.0f per second", float64(n)/took.Seconds())
	if err := server.stop(); err != nil {
		return err
	}
	if server.stderr.lines > 0 {
		row("  log lines read from its stderr", "%d", server.stderr.lines)
	}
	return nil
}

func measureMemory(ctx context.Context, binary string) error {
	title("Memory (resident)")
	daemon, err := startDaemon(ctx, binary)
	if err != nil {
		return err
	}
	if _, err := daemon.ask(`{"id":"1","method":"describe"}`); err != nil {
		return err
	}
	row("at rest, after one describe", "%.1f MiB", daemon.residentMiB())
	const requests = 10_000
	if _, err := daemon.windowed(requests, 250, func(i int) string {
		return fmt.Sprintf(`{"id":"%d","method":"callAction","params":{"action":"hostr.session.status"}}`, i)
	}); err != nil {
		return err
	}
	row(fmt.Sprintf("after %d session.status calls", requests), "%.1f MiB", daemon.residentMiB())
	return daemon.stop()
}

func measureSearch(ctx context.Context, dir, pure, tagged string, o options) error {
	title(fmt.Sprintf("Search: the relay returns 500 of %d listings", o.listings))
	begin := time.Now()
	market, err := sandbox.Start(ctx, sandbox.Options{Listings: o.listings})
	if err != nil {
		return err
	}
	defer market.Close()
	row("(sandbox market with its listings up in)", "%.1f s", time.Since(begin).Seconds())
	config := filepath.Join(dir, "market.json")
	if err := market.WriteConfig(config); err != nil {
		return err
	}
	for _, build := range []struct{ what, binary string }{
		{"pure Go", pure},
		{"libsecp256k1", tagged},
	} {
		if err := searchTwice(ctx, build.what, build.binary, config); err != nil {
			return err
		}
	}
	return nil
}

func searchTwice(ctx context.Context, what, binary, config string) error {
	daemon, err := startDaemon(ctx, binary, "--config", config)
	if err != nil {
		return err
	}
	// A look-up of a stranger opens the connection and verifies nothing, so that every
	// timed search meets the relay alike.
	if _, err := daemon.ask(strangerLookup); err != nil {
		return err
	}
	for i, nth := range []string{"first", "second", "third"} {
		begin := time.Now()
		if _, err := daemon.ask(search(fmt.Sprint(i+1), "a", 50)); err != nil {
			return err
		}
		row(what+", "+nth+" time", "%.1f ms", milliseconds(time.Since(begin)))
	}
	return daemon.stop()
}

const strangerLookup = `{"id":"0","method":"callAction","params":{"action":"hostr.profile.lookup","input":{"npub":"79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"}}}`

// search asks with a word: only then does the filter ask the relay for 500.
func search(id, word string, limit int) string {
	return fmt.Sprintf(`{"id":"%s","method":"callAction","params":{"action":"hostr.listings.search","input":{"query":"%s","limit":%d}}}`, id, word, limit)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
