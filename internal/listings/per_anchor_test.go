package listings

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPerAnchorWorksOnceForEachKey(t *testing.T) {
	t.Parallel()
	var worked atomic.Int32
	outcomes, err := perAnchor(t.Context(), []string{"a", "b", "a", "c", "b"}, func(_ context.Context, key string) (string, error) {
		worked.Add(1)
		return key + key, nil
	})
	if diff := cmp.Diff([]string{"aa", "bb", "aa", "cc", "bb"}, outcomes); diff != "" || err != nil || worked.Load() != 3 {
		t.Errorf("%s, %v, worked %d times", diff, err, worked.Load())
	}
}

// What ends the call ends the list as well, however long it is.
func TestPerAnchorEndsEarly(t *testing.T) {
	t.Parallel()
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	enough := errors.New("enough")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	for name, test := range map[string]struct {
		ctx  context.Context
		most int32
	}{
		"cancelled before": {cancelled, 0},
		"a failure":        {t.Context(), anchorsAtOnce + 1},
	} {
		var worked atomic.Int32
		_, err := perAnchor(test.ctx, keys, func(ctx context.Context, _ string) (int, error) {
			if worked.Add(1) == 1 {
				return 0, enough
			}
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		if !errors.Is(err, enough) || worked.Load() > test.most {
			t.Errorf("%s: %v after %d anchors", name, err, worked.Load())
		}
	}
}
