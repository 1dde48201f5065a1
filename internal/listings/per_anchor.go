package listings

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/relay"
)

// anchorsAtOnce is how many anchors of one call are worked on at the same time.
const anchorsAtOnce = 8

// perAnchor does the work once for each different key, several at a time, and returns
// the outcomes in the order of keys. The first failure ends it, and so does ctx.
func perAnchor[K comparable, R any](ctx context.Context, keys []K, work func(ctx context.Context, key K) (R, error)) ([]R, error) {
	first := make(map[K]int, len(keys))
	outcomes := make([]R, len(keys))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(anchorsAtOnce)
	for i, key := range keys {
		if _, again := first[key]; again {
			continue
		}
		first[key] = i
		if ended := context.Cause(ctx); ended != nil {
			group.Go(func() error { return ended })
			break
		}
		group.Go(func() (err error) {
			outcomes[i], err = contained(ctx, key, work)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, key := range keys {
		outcomes[i] = outcomes[first[key]]
	}
	return outcomes, nil
}

// contained turns a panic into an error, since no caller's recover covers the
// goroutine. Its text may hold what was worked on, so it is not repeated.
func contained[K, R any](ctx context.Context, key K, work func(ctx context.Context, key K) (R, error)) (outcome R, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("reading what the relay has failed unexpectedly (%T)", problem)
		}
	}()
	return work(ctx, key)
}

// partial is the warning of an answer that was cut off, nil when it was not (spec 40
// §12). what says what is not known because of it; the caller adds path and anchor.
func partial(answer relay.Answer, what string) *fault.Error {
	warning := answer.Warning()
	if warning == nil {
		return nil
	}
	return fault.New(fault.PartialResult, "%s %s", what, warning.Message).Transient()
}
