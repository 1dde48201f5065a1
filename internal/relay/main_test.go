package relay

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// khatru starts a goroutine that nothing stops.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/fiatjaf/khatru.(*expirationManager).start"))
}
