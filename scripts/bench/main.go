// Command bench measures the built daemon as a whole process, as the bridge meets
// it: over pipes, with logging on. It prints one table per subject; the figures in
// docs/performance.md come from it.
//
//	go run ./scripts/bench
//	go run ./scripts/bench -location 100000
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
)

type options struct {
	requests int
	spawns   int
	listings int
	location int
}

func main() {
	var o options
	flag.IntVar(&o.requests, "requests", 200_000, "small requests per run")
	flag.IntVar(&o.spawns, "spawns", 15, "times the daemon is spawned")
	flag.IntVar(&o.listings, "listings", 10_000, "listings on the sandbox relay")
	flag.IntVar(&o.location, "location", 0, "measure searching by place instead, over this many listings")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "hostr-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%s %s/%s, %d cores\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	pure, err := build(ctx, dir, "hostr-daemon")
	if err != nil {
		return err
	}
	if o.location > 0 {
		return measureLocation(ctx, dir, pure, o.location)
	}
	tagged, err := build(ctx, dir, "hostr-daemon-libsecp256k1", "-tags", "libsecp256k1")
	if err != nil {
		return err
	}
	for _, subject := range []func() error{
		func() error { return measureStart(ctx, pure, o) },
		func() error { return measureSmallRequests(ctx, pure, o) },
		func() error { return measureMemory(ctx, pure) },
		func() error { return measureSessions(ctx, dir, pure) },
		func() error { return measureSearch(ctx, dir, pure, tagged, o) },
	} {
		if err := subject(); err != nil {
			return err
		}
	}
	return nil
}

func build(ctx context.Context, dir, name string, flags ...string) (string, error) {
	path := filepath.Join(dir, name)
	arguments := append([]string{"build", "-o", path}, flags...)
	command := exec.CommandContext(ctx, "go", append(arguments, "./cmd/hostr-daemon")...)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// row prints one figure, so that every run's output can be compared line by line.
func row(what, format string, args ...any) {
	fmt.Printf("  %-58s %s\n", what, fmt.Sprintf(format, args...))
}

func title(text string) {
	fmt.Printf("\n%s\n%s\n", text, strings.Repeat("-", len(text)))
}
