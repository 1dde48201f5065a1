package main

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"hostr-daemon/internal/logsink"
	"hostr-daemon/internal/redact"
	"hostr-daemon/internal/terminal"
)

// newLogSink returns the one way to stderr for log lines: JSON for a program,
// readable ones for a person, secrets removed from both.
func newLogSink() *logsink.Sink {
	var out io.Writer = os.Stderr
	if isTerminal(os.Stderr) {
		out = terminal.Log(out)
	}
	return logsink.New(redact.Writer(out), 0, time.Now)
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// widthOf is how many characters a line of a terminal has; 0 when that is not known.
func widthOf(file *os.File) int {
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// newJournal returns the logger of all lines. Times are in UTC.
func newJournal(out io.Writer) zerolog.Logger {
	return zerolog.New(out).Hook(logsink.NewTimestamp(time.Now))
}

// partsLevel is the level of the parts below the protocol: what an operator should
// know always, and more when asked for (spec 10 §1.2).
func partsLevel() zerolog.Level {
	if logsWanted() {
		return levelOf("HOSTR_DAEMON_LOG_LEVEL")
	}
	return zerolog.WarnLevel
}

// relayLevel is the level of the relay layer, which is silent unless asked.
func relayLevel() zerolog.Level {
	if logsWanted() {
		return levelOf("HOSTR_DAEMON_NDK_LOG_LEVEL")
	}
	return zerolog.Disabled
}

func logsWanted() bool {
	wanted := strings.ToLower(strings.TrimSpace(os.Getenv("HOSTR_DAEMON_LOGS")))
	return wanted == "1" || wanted == "true"
}

// levels are the words of a level variable; any other is trace.
var levels = map[string]zerolog.Level{
	"debug":   zerolog.DebugLevel,
	"info":    zerolog.InfoLevel,
	"warn":    zerolog.WarnLevel,
	"warning": zerolog.WarnLevel,
	"error":   zerolog.ErrorLevel,
	"fatal":   zerolog.FatalLevel,
	"off":     zerolog.Disabled,
}

func levelOf(variable string) zerolog.Level {
	if level, known := levels[strings.ToLower(strings.TrimSpace(os.Getenv(variable)))]; known {
		return level
	}
	return zerolog.TraceLevel
}
