// Package control lets a person or a script switch the faults of a running
// market over HTTP, with curl and JSON. It only passes on what the market can do.
package control

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/httpfault"
	"hostr-daemon/internal/sandbox/loopback"
)

// Status is the answer to GET /status.
type Status struct {
	Relay    RelayStatus `json:"relay"`
	Blossom  HTTPStatus  `json:"blossom"`
	Geocoder HTTPStatus  `json:"geocoder"`
}

// RelayStatus tells how the relay is.
type RelayStatus struct {
	URL      string           `json:"url"`
	Stopped  bool             `json:"stopped"`
	Faults   sandbox.Faults   `json:"faults"`
	Counters sandbox.Counters `json:"counters"`
}

// HTTPStatus tells how an HTTP server is.
type HTTPStatus struct {
	URL    string             `json:"url"`
	Faults sandbox.HTTPFaults `json:"faults"`
}

// Serve opens the endpoint on the port of loopback (0: a free one).
func Serve(port int, market *sandbox.Market, logger zerolog.Logger) (*loopback.Server, error) {
	server, err := loopback.Serve(port, Handler(market), logger)
	if err != nil {
		return nil, fmt.Errorf("control endpoint: %w", err)
	}
	return server, nil
}

// Handler returns the endpoint.
func Handler(market *sandbox.Market) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, help) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, Status{
			Relay:    RelayStatus{market.RelayURL, market.Relay.Stopped(), market.Relay.Faults(), market.Relay.Counters()},
			Blossom:  HTTPStatus{market.BlossomURL, market.Blossom.Switch.Faults()},
			Geocoder: HTTPStatus{market.GeocoderURL, market.Geocoder.Switch.Faults()},
		})
	})
	mux.HandleFunc("PUT /relay/faults", breaking(market.Relay.Break))
	mux.HandleFunc("DELETE /relay/faults", doing(func() error { market.Relay.Heal(); return nil }))
	mux.HandleFunc("POST /relay/drop", doing(func() error { market.Relay.Drop(); return nil }))
	mux.HandleFunc("POST /relay/stop", doing(func() error { market.Relay.Stop(); return nil }))
	mux.HandleFunc("POST /relay/resume", doing(market.Relay.Resume))
	for name, target := range map[string]*httpfault.Switch{"blossom": market.Blossom.Switch, "geocoder": market.Geocoder.Switch} {
		mux.HandleFunc("PUT /"+name+"/faults", breaking(target.Break))
		mux.HandleFunc("DELETE /"+name+"/faults", doing(func() error { target.Heal(); return nil }))
	}
	return mux
}

const help = `Switch the faults of the sandbox:

  GET    /status            addresses, faults, counters
  PUT    /relay/faults      set the relay's faults, e.g. {"noEose":true} or {"closed":"error: busy","times":2}
  DELETE /relay/faults      heal the relay
  POST   /relay/drop        cut all its connections
  POST   /relay/stop        take it down
  POST   /relay/resume      bring it back
  PUT    /blossom/faults    set Blossom's faults, e.g. {"status":503,"times":2}
  DELETE /blossom/faults    heal Blossom
  PUT    /geocoder/faults   set the geocoder's faults, e.g. {"delayMillis":2000}
  DELETE /geocoder/faults   heal the geocoder

Relay:   noEose, closed, notice, garbage, oversizedBytes, foreign, forged,
         duplicates, dropOnRequest, dropAfterEvents, refuseEvents, noOk,
         dropBeforeOk, shortFrames, noChallenge, refuseConnections,
         handshakeStatus, halfOpen, delayMillis, times
Blossom, geocoder: status, notJson, hangUp, delayMillis, times
`

// breaking sets faults from the JSON body.
func breaking[F any](set func(F)) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		var faults F
		body := json.NewDecoder(http.MaxBytesReader(w, request.Body, 1<<16))
		body.DisallowUnknownFields()
		if err := body.Decode(&faults); err != nil {
			refuse(w, http.StatusBadRequest, "the body must be a JSON object of faults: "+strings.TrimPrefix(err.Error(), "json: "))
			return
		}
		set(faults)
		answer(w, faults)
	}
}

func doing(act func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := act(); err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": reason})
}
