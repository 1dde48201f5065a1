package signer

import (
	"testing"

	"go.uber.org/goleak"

	"hostr-daemon/internal/sandbox"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sandbox.KhatruGoroutine))
}
