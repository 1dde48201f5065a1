package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/daemon"
	"hostr-daemon/internal/logsink"
	"hostr-daemon/internal/redact"
)

// newBenchmarkDaemon runs a daemon on operating system pipes, with its log on as in
// production.
func newBenchmarkDaemon(b testing.TB, p *product) (in *os.File, out *bufio.Reader) {
	b.Helper()
	stdin, toDaemon := osPipe(b)
	fromDaemon, stdout := osPipe(b)
	sink := logsink.New(redact.Writer(io.Discard), 0, time.Now)
	logger := zerolog.New(sink).Hook(logsink.NewTimestamp(time.Now))
	d := daemon.New(daemon.Config{Product: p, Environment: "test", Logger: logger, In: stdin, Out: stdout})
	ended := make(chan error, 1)
	go func() { ended <- d.Run(context.Background()) }()
	b.Cleanup(func() {
		toDaemon.Close()
		go func() { _, _ = io.Copy(io.Discard, fromDaemon) }()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		stdout.Close()
		if err := sink.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return toDaemon, bufio.NewReaderSize(fromDaemon, 1<<20)
}

// pipeline sends n requests as fast as they are taken and reads as many answers.
func pipeline(b testing.TB, p *product, n int, line func(i int) string) {
	in, out := newBenchmarkDaemon(b, p)
	var batch bytes.Buffer
	for i := range min(n, 10_000) {
		batch.WriteString(line(i))
		batch.WriteByte('\n')
	}
	go func() {
		for left := n; left > 0; left -= 10_000 {
			text := batch.Bytes()
			if left < 10_000 {
				text = []byte(strings.Join(strings.SplitAfterN(string(text), "\n", left+1)[:left], ""))
			}
			if _, err := in.Write(text); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	for range n {
		readFrame(b, out)
	}
}

func readFrame(b testing.TB, out *bufio.Reader) {
	for {
		_, err := out.ReadSlice('\n')
		if err == nil {
			return
		}
		if err != bufio.ErrBufferFull {
			b.Fatal(err)
		}
	}
}

func reportRate(b *testing.B) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

func BenchmarkUnknownMethod(b *testing.B) {
	b.ReportAllocs()
	pipeline(b, &product{}, b.N, func(i int) string {
		return fmt.Sprintf(`{"id":"%d","method":"nope","traceId":"0123456789abcdef","params":{}}`, i)
	})
	reportRate(b)
}

func BenchmarkCancel(b *testing.B) {
	b.ReportAllocs()
	pipeline(b, &product{}, b.N, func(i int) string {
		return fmt.Sprintf(`{"id":"cancel-%d","method":"cancel","params":{"requestId":"%d"}}`, i, i)
	})
	reportRate(b)
}

func BenchmarkCallAction(b *testing.B) {
	b.ReportAllocs()
	in, out := newBenchmarkDaemon(b, &product{})
	for i := range b.N { // one after the other: a pipeline would be refused as busy
		fmt.Fprintf(in, `{"id":"%d","method":"callAction","traceId":"0123456789abcdef","params":{"action":"hostr.session.status","input":{}}}`+"\n", i)
		readFrame(b, out)
	}
	reportRate(b)
}

func BenchmarkDescribe(b *testing.B) {
	catalog := json.RawMessage(`{"version":1,"actions":["` + strings.Repeat("A description of an action. ", 4600) + `"]}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(catalog)))
	in, out := newBenchmarkDaemon(b, &product{describe: func(context.Context) (json.RawMessage, error) { return catalog, nil }})
	for i := range b.N {
		fmt.Fprintf(in, `{"id":"%d","method":"describe","params":{}}`+"\n", i)
		readFrame(b, out)
	}
	reportRate(b)
}

// BenchmarkLargeLine sends uploads of 64 MB; B/op beside MB/s shows how often the
// line is copied.
func BenchmarkLargeLine(b *testing.B) {
	line := []byte(`{"id":1,"method":"uploadImage","params":{"base64":"` + strings.Repeat("QUJD", 16<<20) + `"}}` + "\n")
	in, out := newBenchmarkDaemon(b, &product{})
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := in.Write(line); err != nil {
			b.Fatal(err)
		}
		readFrame(b, out)
	}
}

// TestLargeLineAllocatesLittle: about twice its length, in all.
func TestLargeLineAllocatesLittle(t *testing.T) { // not parallel: it reads the process's counters
	const size = 32 << 20
	line := []byte(`{"id":1,"method":"uploadImage","params":{"base64":"` + strings.Repeat("A", size) + `"}}` + "\n")
	in, out := newBenchmarkDaemon(t, &product{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := in.Write(line); err != nil {
		t.Fatal(err)
	}
	readFrame(t, out)
	runtime.ReadMemStats(&after)
	if ratio := float64(after.TotalAlloc-before.TotalAlloc) / size; ratio > 2.2 {
		t.Errorf("a line allocates %.2f times its length", ratio)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 8<<20 {
		t.Errorf("%d bytes are kept after the line", kept)
	}
}

// TestMemoryStaysFlat over 100,000 requests of each kind.
func TestMemoryStaysFlat(t *testing.T) { // not parallel: it reads the process's counters
	lines := []string{
		`{"id":"%d","method":"nope","params":{}}`,
		`{"id":"%d","method":"cancel","params":{"requestId":"x"}}`,
		`{"id":"%d","method":"callAction","traceId":"t","params":{"action":"x"}}`,
		`not JSON %d`,
	}
	in, out := newBenchmarkDaemon(t, &product{})
	round := func(n int) {
		go func() {
			for i := range n {
				fmt.Fprintf(in, lines[i%len(lines)]+"\n", i)
			}
		}()
		for range n {
			readFrame(t, out)
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round(10_000)
	before := heap()
	round(100_000)
	if after := heap(); after > before+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
}
