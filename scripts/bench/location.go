package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/nbd-wtf/go-nostr"
	"golang.org/x/sync/errgroup"

	"hostr-daemon/internal/location"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/geocoder"
)

const (
	// rounds is how often each part is measured; the best counts.
	rounds = 21
	// cellBudget is the most cells a search asks for (spec 40 §4.1).
	cellBudget = 500
)

// measureLocation searches by place, and measures the parts of a search one by one:
// what the relay needs to look up, what the socket adds, what the daemon does. All run
// on this machine, the relay in this process.
func measureLocation(ctx context.Context, dir, binary string, listings int) error {
	title(fmt.Sprintf("Search by location: %d listings on the sandbox relay", listings))
	begin := time.Now()
	open, err := sandbox.Start(ctx, sandbox.Options{Listings: listings})
	if err != nil {
		return err
	}
	defer open.Close()
	row("(sandbox market with its listings up in)", "%.1f s", time.Since(begin).Seconds())
	config := filepath.Join(dir, "location.json")
	if err := open.WriteConfig(config); err != nil {
		return err
	}
	daemon, err := startDaemon(ctx, binary, "--config", config)
	if err != nil {
		return err
	}
	if _, err := daemon.ask(strangerLookup); err != nil { // opens the connection
		return err
	}
	for _, place := range []struct{ what, name, word string }{
		{"a village, the newest 50", "El Zonte", ""},
		{"a city, the newest 50", "Lisbon", ""},
		{"a country, the newest 50", "Portugal", ""},
		{"a city with a word (the relay returns 500)", "Lisbon", "a"},
		{"a country with a word (the relay returns 500)", "Portugal", "a"},
	} {
		if err := measurePlace(ctx, daemon, open, place.what, place.name, place.word); err != nil {
			return fmt.Errorf("searching in %s: %w", place.name, err)
		}
	}
	return daemon.stop()
}

func measurePlace(ctx context.Context, daemon *child, open *sandbox.Market, what, name, word string) error {
	frame := placeSearch(name, word)
	ask := func() error {
		line, err := daemon.ask(frame)
		if err == nil && !strings.Contains(line, `"ok":true`) {
			err = errors.New("the daemon answered: " + line[:min(len(line), 300)])
		}
		return err
	}
	first, err := bestOf(1, ask)
	if err != nil {
		return err
	}
	filter, err := lastFilter(open)
	if err != nil {
		return err
	}
	events, err := open.Relay.Query(ctx, filter)
	if err != nil {
		return err
	}
	relay, err := openReader(ctx, open.RelayURL, frameOf("REQ", "q", filter))
	if err != nil {
		return err
	}
	defer relay.close()
	frames, err := relay.read(ctx)
	if err != nil {
		return err
	}
	plainServer := servePlain(frames)
	defer plainServer.Close()
	plain, err := openReader(ctx, "ws"+strings.TrimPrefix(plainServer.URL, "http"), frameOf("REQ"))
	if err != nil {
		return err
	}
	defer plain.close()
	outline, err := outlineOf(open, name)
	if err != nil {
		return err
	}
	best, err := bestOf(rounds, ask,
		func() error { _, err := open.Relay.Query(ctx, filter); return err },
		func() error { _, err := relay.read(ctx); return err },
		func() error { _, err := plain.read(ctx); return err },
		func() error { return decodeAll(events, 50) },
		func() error { return verifyAll(events) },
		func() error { return cover(ctx, outline) },
	)
	if err != nil {
		return err
	}
	whole, lookup, wire, network, decoded := best[0], best[1], best[2], best[3], best[4]
	share := func(part time.Duration) string {
		return fmt.Sprintf("%.1f ms, %.0f %%", milliseconds(part), 100*part.Seconds()/whole.Seconds())
	}
	fmt.Printf("  %s: %s, %d cells, %d events\n", what, name, len(filter.Tags["g"]), len(events))
	row("  first time", "%.1f ms", milliseconds(first[0]))
	row(fmt.Sprintf("  again, best of %d", rounds), "%.1f ms", milliseconds(whole))
	row("    the relay looks up", "%s", share(lookup))
	row("    the relay writes its answer, and the proxy before it", "%s", share(wire-lookup-network))
	row("    the network: the same frames from a plain server", "%s", share(network))
	row("    the daemon decodes listings and writes their summaries", "%s", share(decoded))
	row("    the rest, less what ran beside the relay", "%s", share(whole-wire-decoded))
	row("  once: signatures, on all cores", "%.1f ms", milliseconds(best[5]))
	row("  once: outline to cells", "%.1f ms", milliseconds(best[6]))
	return nil
}

func placeSearch(place, word string) string {
	input := map[string]any{"location": place, "limit": 50}
	if word != "" {
		input["query"] = word
	}
	text, err := json.Marshal(input)
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	return fmt.Sprintf(`{"id":"1","method":"callAction","params":{"action":"hostr.listings.search","input":%s}}`, text)
}

// lastFilter is what the daemon has asked the relay last.
func lastFilter(open *sandbox.Market) (nostr.Filter, error) {
	for _, frame := range slices.Backward(open.Relay.Frames()) {
		if frame.Label != "REQ" {
			continue
		}
		var elements []json.RawMessage
		if err := json.Unmarshal([]byte(frame.Text), &elements); err != nil || len(elements) < 3 {
			return nostr.Filter{}, fmt.Errorf("the daemon's REQ is no frame: %w", err)
		}
		var filter nostr.Filter
		err := json.Unmarshal(elements[2], &filter)
		return filter, err
	}
	return nostr.Filter{}, errors.New("the daemon has not asked the relay")
}

// reader asks a relay one thing again and again, and does nothing but read.
type reader struct {
	connection *websocket.Conn
	request    []byte
}

func openReader(ctx context.Context, url string, request []byte) (*reader, error) {
	connection, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	connection.SetReadLimit(64 << 20)
	return &reader{connection, request}, nil
}

func (r *reader) close() { _ = r.connection.CloseNow() }

// read asks, and returns the frames up to EOSE.
func (r *reader) read(ctx context.Context) ([][]byte, error) {
	if err := r.connection.Write(ctx, websocket.MessageText, r.request); err != nil {
		return nil, err
	}
	var frames [][]byte
	for {
		_, frame, err := r.connection.Read(ctx)
		frames = append(frames, frame)
		if err != nil || bytes.HasPrefix(frame, []byte(`["EOSE"`)) {
			return frames, err
		}
	}
}

// servePlain is a server that has the frames ready for whoever asks for anything.
func servePlain(frames [][]byte) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		connection, err := websocket.Accept(w, request, nil)
		if err != nil {
			return
		}
		defer connection.CloseNow()
		for {
			if _, _, err := connection.Read(request.Context()); err != nil {
				return
			}
			for _, frame := range frames {
				if err := connection.Write(request.Context(), websocket.MessageText, frame); err != nil {
					return
				}
			}
		}
	}))
}

func frameOf(elements ...any) []byte {
	frame, err := json.Marshal(elements)
	if err != nil {
		panic(err) // texts and filters always encode
	}
	return frame
}

func verifyAll(events []nostr.Event) error {
	var group errgroup.Group
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		group.Go(func() error {
			for i := worker; i < len(events); i += workers {
				if valid, err := events[i].CheckSignature(); !valid || err != nil {
					return fmt.Errorf("event %s is not genuine: %w", events[i].ID, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// decodeAll reads all events as listings, and writes the first shown ones as results.
func decodeAll(events []nostr.Event, shown int) error {
	for i := range events {
		listing, err := market.DecodeListing(&events[i])
		if err != nil {
			return err
		}
		if i < shown {
			if _, err := json.Marshal(listing.Summary()); err != nil {
				return err
			}
		}
	}
	return nil
}

// outlineOf is the outline that the geocoder gives; a place that is a point has none.
func outlineOf(open *sandbox.Market, name string) (geocoder.Place, error) {
	for _, place := range open.Geocoder.Places() {
		if place.Name == name {
			return place, nil
		}
	}
	return geocoder.Place{}, fmt.Errorf("the geocoder does not know %s", name)
}

func cover(ctx context.Context, place geocoder.Place) error {
	box := place.BoundingBox
	geometry := location.Rectangle(box[0], box[1], box[2], box[3])
	if len(place.GeoJSON) > 0 {
		var err error
		if geometry, err = location.ParseGeometry(place.GeoJSON); err != nil {
			return err
		}
	}
	_, err := location.Cover(ctx, geometry, cellBudget)
	return err
}

// bestOf does all the work round by round, so that all of it meets the same machine, and
// returns the shortest time of each: what is longer was shared with others.
func bestOf(rounds int, work ...func() error) ([]time.Duration, error) {
	best := make([]time.Duration, len(work))
	for round := range rounds {
		for i, do := range work {
			begin := time.Now()
			if err := do(); err != nil {
				return nil, err
			}
			if took := time.Since(begin); round == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	return best, nil
}
