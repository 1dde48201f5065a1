package geocode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// kept is a Memory in memory. It may fail, or be slow.
type kept struct {
	mu      sync.Mutex
	answers map[[32]byte][]byte
	fail    error
	// hold, when set, is waited for before anything is kept.
	hold chan struct{}
}

func (k *kept) Recall(_ context.Context, key [32]byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.answers[key], k.fail
}

func (k *kept) Keep(_ context.Context, key [32]byte, answer []byte) error {
	if k.hold != nil {
		<-k.hold
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.answers == nil {
		k.answers = make(map[[32]byte][]byte)
	}
	k.answers[key] = answer
	return k.fail
}

// damage puts something else in place of every answer.
func (k *kept) damage(change func(answer []byte) []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, answer := range k.answers {
		k.answers[key] = change(answer)
	}
}

func remembering(memory Memory) func(*Config) {
	return func(config *Config) { config.Memory = memory }
}

// lookUp asks a client of its own, as after a restart, and closes it.
func lookUp(t *testing.T, server *geocoder, memory Memory, configure ...func(*Config)) (Place, Point) {
	t.Helper()
	client := server.client(t, append(configure, remembering(memory))...)
	defer client.Close()
	place, err := client.Place(t.Context(), "Lisbon")
	if err != nil {
		t.Fatal(err)
	}
	point, err := client.Point(t.Context(), "1 Main St")
	if err != nil {
		t.Fatal(err)
	}
	return place, point
}

func TestAnswersOutliveTheClient(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{}, reply{body: lisbon}, reply{body: sanSalvador})
	memory := &kept{}
	firstPlace, firstPoint := lookUp(t, server, memory)
	place, point := lookUp(t, server, memory)
	samePlace(t, firstPlace, place)
	if place.Feature != "state" || point != firstPoint {
		t.Errorf("recalled as a %s, at %v; it was at %v", place.Feature, point, firstPoint)
	}
	if sent := len(server.queries()); sent != 3 {
		t.Errorf("%d requests, want 3", sent)
	}
}

// An address is nobody else's business, whoever reads the file.
func TestKeptPointsTellNoAddress(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{body: sanSalvador})
	memory := &kept{}
	client := server.client(t, remembering(memory))
	if _, err := client.Point(t.Context(), "San Salvador"); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if len(memory.answers) != 1 {
		t.Fatalf("%d answers are kept", len(memory.answers))
	}
	for _, packed := range memory.answers {
		answer, err := unpack(packed, maxAnswerBytes)
		if want := `[{"lat":"13.697629","lon":"-89.191156"}]`; err != nil || string(answer) != want {
			t.Errorf("kept %s, error %v, want %s", answer, err, want)
		}
	}
}

func TestOnlySuccessIsKept(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t)
	memory := &kept{}
	client := server.client(t, remembering(memory))
	if _, err := client.Place(t.Context(), "Nowhere"); err == nil {
		t.Error("a place was found")
	}
	if _, err := client.Point(t.Context(), "Nowhere"); err == nil {
		t.Error("an address was found")
	}
	client.Close()
	if len(memory.answers) != 0 {
		t.Errorf("%d answers are kept", len(memory.answers))
	}
}

func TestDamagedAnswersAreAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]byte) []byte{
		"empty":   func([]byte) []byte { return []byte{} },
		"no gzip": func([]byte) []byte { return []byte("city\n[]") },
		"cut off": func(answer []byte) []byte { return answer[:len(answer)-5] },
		"a bit flipped": func(answer []byte) []byte {
			changed := bytes.Clone(answer)
			changed[len(changed)-6] ^= 1
			return changed
		},
		"not JSON":        func([]byte) []byte { return pack([]byte("city\nx")) },
		"no place":        func([]byte) []byte { return pack([]byte("city\n[]")) },
		"unknown feature": func([]byte) []byte { return pack([]byte("planet\n" + lisbon)) },
		"no feature":      func([]byte) []byte { return pack([]byte(lisbon + "x")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := []reply{{body: lisbon}, {body: sanSalvador}}
			server := newGeocoder(t, append(answers, answers...)...)
			memory := &kept{}
			wantPlace, wantPoint := lookUp(t, server, memory)
			memory.damage(change)
			place, point := lookUp(t, server, memory)
			samePlace(t, wantPlace, place)
			if point != wantPoint || len(server.queries()) != 4 {
				t.Errorf("at %v after %d requests, want %v after 4", point, len(server.queries()), wantPoint)
			}
			lookUp(t, server, memory)
			if sent := len(server.queries()); sent != 4 {
				t.Errorf("%d requests, want 4: what was asked for again is kept", sent)
			}
		})
	}
}

func TestMemoryThatFailsIsNone(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{body: lisbon}, reply{body: sanSalvador})
	var lines bytes.Buffer
	logged := func(config *Config) { config.Logger = zerolog.New(zerolog.SyncWriter(&lines)) }
	lookUp(t, server, &kept{fail: errors.New("the disk is full")}, logged)
	if got := strings.Count(lines.String(), "the disk is full"); got != 4 {
		t.Errorf("%d warnings, want 4:\n%s", got, lines.String())
	}
	if strings.Contains(lines.String(), "Main St") {
		t.Errorf("the log names the address:\n%s", lines.String())
	}
}

func TestNobodyWaitsForTheMemoryButClose(t *testing.T) {
	t.Parallel()
	server := newGeocoder(t, reply{body: lisbon})
	memory := &kept{hold: make(chan struct{})}
	client := server.client(t, remembering(memory))
	if _, err := client.Place(t.Context(), "Lisbon"); err != nil {
		t.Fatal(err)
	}
	close(memory.hold)
	client.Close()
	if len(memory.answers) != 1 {
		t.Errorf("%d answers are kept", len(memory.answers))
	}
}

func TestAnotherGeocodersAnswersAreNotUsed(t *testing.T) {
	t.Parallel()
	memory := &kept{}
	for range 2 {
		server := newGeocoder(t, reply{body: lisbon}, reply{body: sanSalvador})
		lookUp(t, server, memory)
		if sent := len(server.queries()); sent != 2 {
			t.Errorf("%d requests, want 2", sent)
		}
	}
}

func TestUnpackedAnswersAreBounded(t *testing.T) {
	t.Parallel()
	packed := pack(make([]byte, 1001))
	if _, err := unpack(packed, 1000); err == nil {
		t.Error("an answer larger than the limit was unpacked")
	}
	if answer, err := unpack(packed, 1001); err != nil || len(answer) != 1001 {
		t.Errorf("%d bytes, error %v", len(answer), err)
	}
}

// An outline of a hundred thousand points, as a large country has, after a restart.
func BenchmarkRecalledPlace(b *testing.B) {
	var body bytes.Buffer
	body.WriteString(`[{"display_name":"A country","geojson":{"type":"Polygon","coordinates":[[`)
	for i := range 100_000 {
		angle := 2 * math.Pi * float64(i) / 100_000
		fmt.Fprintf(&body, "[%.7f,%.7f],", 10*math.Cos(angle), 10*math.Sin(angle))
	}
	body.WriteString(`[10,0]]]}}]`)
	answer := append([]byte("country\n"), body.Bytes()...)
	b.Run("Pack", func(b *testing.B) {
		for b.Loop() {
			pack(answer)
		}
	})
	b.Run("Recall", func(b *testing.B) {
		memory := &kept{answers: map[[32]byte][]byte{}}
		client, err := New(Config{Memory: memory})
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		key := answerKey("country")
		memory.answers[key] = pack(answer)
		for b.Loop() {
			if _, ok := client.recallPlace(b.Context(), key); !ok {
				b.Fatal("not recalled")
			}
		}
	})
}
