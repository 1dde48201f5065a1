package terminal

import (
	"bytes"
	"io"
	"time"

	"github.com/rs/zerolog"
)

// maxLogLine is the longest log line shown, in characters: results and parameters are
// for programs.
const maxLogLine = 400

// Log returns a writer that turns zerolog's JSON lines into readable ones, one Write
// of whole lines at a time. A line that is no JSON stays as it is. There are no
// colours, because everything that steers a terminal is left out.
func Log(out io.Writer) io.Writer { return &logWriter{out: out} }

type logWriter struct {
	out  io.Writer
	page bytes.Buffer
}

// Write reports len(lines) unless out fails.
func (w *logWriter) Write(lines []byte) (int, error) {
	w.page.Reset()
	readable := zerolog.ConsoleWriter{
		Out: &w.page, TimeFormat: time.TimeOnly, NoColor: true, FieldsOrder: []string{"event", "id", "method", "code"},
	}
	for line := range bytes.Lines(lines) {
		start := w.page.Len()
		if _, err := readable.Write(line); err != nil {
			w.page.Write(line)
		}
		w.shorten(start)
	}
	if err := Print(w.out, w.page.String()); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// shorten cuts the line that begins at start.
func (w *logWriter) shorten(start int) {
	runes := bytes.Runes(w.page.Bytes()[start:])
	if len(runes) <= maxLogLine {
		return
	}
	w.page.Truncate(start)
	w.page.WriteString(string(runes[:maxLogLine]) + "…\n")
}
