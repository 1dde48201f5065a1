package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/market"
	"hostr-daemon/internal/relay"
)

const (
	// heartbeatQuiet is how long requests are collected; each one starts it again.
	heartbeatQuiet = 5 * time.Second
	// heartbeatLongest is how long a steady flow of requests can put a heartbeat off.
	heartbeatLongest = 30 * time.Second
)

// heartbeat publishes that this account has received its messages, merging requests
// (spec 60 §8.5).
type heartbeat struct {
	requests chan struct{}
	publish  func(ctx context.Context)
}

func newHeartbeat(publish func(context.Context)) *heartbeat {
	return &heartbeat{requests: make(chan struct{}, 1), publish: publish}
}

func (h *heartbeat) request() { signal(h.requests) }

func (h *heartbeat) run(ctx context.Context) {
	for {
		select {
		case <-h.requests:
		case <-ctx.Done():
			return
		}
		h.collect(ctx)
		if ctx.Err() != nil {
			return
		}
		h.publish(ctx)
	}
}

// collect returns when requests have stopped coming, or have come for long enough.
func (h *heartbeat) collect(ctx context.Context) {
	quiet, longest := time.NewTimer(heartbeatQuiet), time.NewTimer(heartbeatLongest)
	defer quiet.Stop()
	defer longest.Stop()
	for {
		select {
		case <-h.requests:
			quiet.Reset(heartbeatQuiet)
		case <-quiet.C:
			return
		case <-longest.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// publishHeartbeat signs and publishes one heartbeat; a failure is only logged.
func (s *Service) publishHeartbeat(ctx context.Context) {
	s.contain("publishing a heartbeat", func() {
		if err := s.sendHeartbeat(ctx); err != nil && ctx.Err() == nil {
			s.tellUnauthorized(err)
			s.log.Info().Str("event", "inbox.heartbeat.failed").Err(err).Send()
		}
	})
}

func (s *Service) sendHeartbeat(ctx context.Context) error {
	event := nostr.Event{PubKey: s.me, Kind: market.KindHeartbeat, CreatedAt: s.timestamp(), Tags: nostr.Tags{}}
	signing, cancel := context.WithTimeout(ctx, signerLimit)
	defer cancel()
	if err := s.account.SignEvent(signing, &event); err != nil {
		return fmt.Errorf("signing it: %w", err)
	}
	_, err := s.relays.Publish(ctx, event, relay.PublishOptions{Relays: s.targets()})
	return err
}
