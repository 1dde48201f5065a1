package sessions

import (
	"context"
	"fmt"
	"runtime/debug"

	"hostr-daemon/internal/fault"
)

// goBackground runs work that outlives the request that started it, until it is done
// or the registry closes. It reports whether the work was started. A panic costs that
// work only; what names it for the log.
func (r *Registry) goBackground(what string, work func(ctx context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lifetime.Err() != nil {
		return false
	}
	r.background.Go(func() {
		_ = r.contain(what, func() error { work(r.lifetime); return nil }) // it is in the log
	})
	return true
}

// contain runs work and turns a panic into an error, since the recover of no request
// covers background work. The text of a panic may hold what was worked on, so the log
// gets its type and the stack alone.
func (r *Registry) contain(what string, work func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		problem := recover() // nil for runtime.Goexit, which ends only this goroutine
		r.config.Logger.Error().Str("event", "session.panic").Str("during", what).
			Str("panic", fmt.Sprintf("%T", problem)).Bytes("stack", debug.Stack()).Send()
		err = fault.New(fault.UnexpectedError, "Something went wrong inside hostr-daemon while %s: ask again, and look into its log.", what).Transient()
	}()
	err = work()
	returned = true
	return err
}
