package main

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/catalog"
	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/logsink"
	"hostr-daemon/internal/runtime"
)

// program is a running daemon with its log, the same under every command.
type program struct {
	runtime *runtime.Runtime
	product *actions.Product
	// journal takes the request log.
	journal zerolog.Logger

	sink *logsink.Sink
}

// open starts a daemon that opens its state in the background; notify, which may be
// nil, takes its notifications. The program must be closed.
func open(ctx context.Context, actionCatalog *catalog.Catalog, options *Options, notify func(method string, params any)) (*program, error) {
	sink := newLogSink()
	journal := newJournal(sink)
	signIns := journal
	if notify == nil {
		signIns = journal.Level(partsLevel()) // a command for people shows its course itself
	}
	running, err := runtime.Start(ctx, runtime.Options{
		Environment: options.environment(),
		StateDir:    options.StateDir,
		Logger:      journal.Level(partsLevel()),
		RelayLogger: journal.Level(relayLevel()),
		Journal:     signIns,
		Secrets:     options.secrets(),
		Images:      options.images(),
		Notify:      notify,
		Version:     version,
	})
	if err != nil {
		return nil, errors.Join(err, closeSink(sink))
	}
	return &program{
		runtime: running,
		product: actions.New(actionCatalog, running),
		journal: journal,
		sink:    sink,
	}, nil
}

// close ends what runs, then writes the log lines that still wait.
func (p *program) close() error {
	err := p.runtime.Close()
	_ = closeSink(p.sink) // a stalled stderr is nobody's business at the end
	return err
}

// closeAfter is close behind a command that ended with err, which counts more than
// what closing says.
func (p *program) closeAfter(err error) error {
	closed := p.close()
	if err != nil {
		return err
	}
	return closed
}

// closeSink gives the last lines as long as a signal leaves (spec 10 §1.4).
func closeSink(sink *logsink.Sink) error {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	return sink.Close(ctx)
}
