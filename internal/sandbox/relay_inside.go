//go:build !race

package sandbox

import (
	"context"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox/hostrrelay"
	"hostr-daemon/internal/sandbox/relayproxy"
)

// openRelay runs the relay in this process.
func openRelay(_ context.Context, serviceURL string, logger zerolog.Logger) (relayproxy.Backend, error) {
	return hostrrelay.Open(serviceURL, logger)
}
