package logsink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"hostr-daemon/internal/logsink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

func clock() time.Time { return time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC) }

func closeSink(t *testing.T, sink *logsink.Sink) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := sink.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

func write(t *testing.T, sink *logsink.Sink, line string) {
	t.Helper()
	if n, err := sink.Write([]byte(line)); n != len(line) || err != nil {
		t.Errorf("write: %d, %v", n, err)
	}
}

func TestLinesArriveWholeAndInOrder(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	sink := logsink.New(&out, 0, clock)
	var want strings.Builder
	for i := range 20_000 {
		line := fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", i%100))
		want.WriteString(line)
		write(t, sink, line)
	}
	closeSink(t, sink)
	if out.String() != want.String() {
		t.Errorf("%d bytes arrived of %d, or in another order", out.Len(), want.Len())
	}
	write(t, sink, "too late\n")
	if strings.Contains(out.String(), "too late") {
		t.Error("a line written after Close arrived")
	}
}

func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	sink := logsink.New(&out, 0, clock)
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for i := range 500 {
				write(t, sink, fmt.Sprintf("<%d %d>\n", writer, i))
			}
		})
	}
	writers.Wait()
	closeSink(t, sink)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "<") || !strings.HasSuffix(line, ">") {
			t.Fatalf("torn line %q", line)
		}
	}
	if len(lines) != 8*500 {
		t.Errorf("%d lines of %d", len(lines), 8*500)
	}
}

// gate is a writer that blocks until it is opened, as a stderr nobody reads.
type gate struct {
	entered chan struct{}
	open    chan struct{}
	out     bytes.Buffer
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 100), open: make(chan struct{})} }

func (g *gate) Write(p []byte) (int, error) {
	g.entered <- struct{}{}
	<-g.open
	return g.out.Write(p)
}

func TestStalledReaderDropsWholeLinesAndCountsThem(t *testing.T) {
	t.Parallel()
	stderr := newGate()
	sink := logsink.New(stderr, 100, clock)
	write(t, sink, "first\n")
	<-stderr.entered // the goroutine hangs in its write now
	for i := range 50 {
		write(t, sink, fmt.Sprintf("line %02d, 20 bytes..\n", i))
	}
	close(stderr.open)
	closeSink(t, sink)
	const want = "first\nline 00, 20 bytes..\nline 01, 20 bytes..\nline 02, 20 bytes..\nline 03, 20 bytes..\n" +
		`{"level":"warn","time":"2024-05-01T10:00:00Z","event":"logDropped","count":46}` + "\n"
	if got := stderr.out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestCloseDoesNotWaitForAStalledReader(t *testing.T) {
	t.Parallel()
	stderr := newGate()
	sink := logsink.New(stderr, 0, clock)
	write(t, sink, "line\n")
	<-stderr.entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := sink.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	close(stderr.open)
	closeSink(t, sink) // the goroutine ends when its write returns
}

func TestClosedReaderIsHarmless(t *testing.T) {
	t.Parallel()
	reader, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	reader.Close()
	sink := logsink.New(stderr, 0, clock)
	for range 1000 {
		write(t, sink, "line\n")
	}
	closeSink(t, sink)
}

func TestLineLongerThanTheLimit(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	sink := logsink.New(&out, 100, clock)
	write(t, sink, strings.Repeat("x", 200)+"\n")
	closeSink(t, sink)
	if got := out.String(); !strings.Contains(got, `"event":"logDropped","count":1`) {
		t.Errorf("got %q", got)
	}
}

func TestTimestamp(t *testing.T) {
	t.Parallel()
	now := time.Date(2024, 5, 1, 12, 0, 0, 999_999, time.FixedZone("", 2*60*60))
	var out strings.Builder
	logger := zerolog.New(&out).Hook(logsink.NewTimestamp(func() time.Time { return now }))
	for range 2 {
		logger.Info().Msg("a")
		now = now.Add(time.Millisecond / 2)
		logger.Info().Msg("b")
	}
	const want = `{"level":"info","time":"2024-05-01T10:00:00.000Z","message":"a"}` + "\n" +
		`{"level":"info","time":"2024-05-01T10:00:00.001Z","message":"b"}` + "\n" +
		`{"level":"info","time":"2024-05-01T10:00:00.001Z","message":"a"}` + "\n" +
		`{"level":"info","time":"2024-05-01T10:00:00.001Z","message":"b"}` + "\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func BenchmarkLogger(b *testing.B) {
	for name, logger := range map[string]zerolog.Logger{
		"own":     zerolog.New(io.Discard).Hook(logsink.NewTimestamp(time.Now)),
		"zerolog": zerolog.New(io.Discard).With().Timestamp().Logger(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				logger.Info().Str("event", "request").Str("id", "12345").Str("method", "nope").Send()
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	sink := logsink.New(io.Discard, 0, time.Now)
	line := []byte(strings.Repeat("x", 200) + "\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sink.Write(line); err != nil {
			b.Fatal(err)
		}
	}
	if err := sink.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
