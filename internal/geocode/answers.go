package geocode

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"hostr-daemon/internal/flight"
)

// Memory keeps answers across restarts, as many and as long as it thinks fit. A key
// is a hash that names no place. What comes back is checked before it is used, so a
// memory may be damaged.
type Memory interface {
	// Recall returns what Keep stored under the key, nil when there is nothing.
	Recall(ctx context.Context, key [32]byte) ([]byte, error)
	Keep(ctx context.Context, key [32]byte, answer []byte) error
}

const (
	// recallTimeout bounds a question to the memory: the geocoder can be asked too.
	recallTimeout = 250 * time.Millisecond
	// keepTimeout bounds what Close waits for.
	keepTimeout = time.Second
)

// answers is the way to a Memory, which may be nil. Nothing that goes wrong there is
// more than an answer not remembered.
type answers struct {
	memory  Memory
	log     zerolog.Logger
	most    int64 // bytes of one answer
	keeping flight.Group[struct{}]
}

// answerKey names a look-up at one geocoder.
func answerKey(parts ...string) [32]byte { return sha256.Sum256([]byte(strings.Join(parts, "\x00"))) }

// recall returns an answer that was kept, nil when there is none.
func (a *answers) recall(ctx context.Context, key [32]byte) []byte {
	if a.memory == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, recallTimeout)
	defer cancel()
	packed, err := a.memory.Recall(limited, key)
	var answer []byte
	if packed != nil && err == nil {
		answer, err = unpack(packed, a.most)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn().Err(err).Msg("a kept answer of the geocoder could not be read; asking it again")
	}
	return answer
}

// keep has an answer kept in the background; Close waits for it.
func (a *answers) keep(ctx context.Context, key [32]byte, answer []byte) {
	if a.memory == nil {
		return
	}
	a.keeping.Start(ctx, string(key[:]), func(ctx context.Context) (struct{}, error) {
		// Close lets it end by itself: the command that asked may be the whole process.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
		defer cancel()
		if err := a.memory.Keep(ctx, key, pack(answer)); err != nil {
			a.log.Warn().Err(err).Msg("an answer of the geocoder could not be kept; it will be asked again")
		}
		return struct{}{}, nil
	})
}

func (a *answers) close() { a.keeping.Close() }

// pack shortens an answer, to a third for an outline, and adds a checksum.
func pack(answer []byte) []byte {
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		panic(err) // only for an unknown level
	}
	_, _ = writer.Write(answer) // a buffer takes everything
	_ = writer.Close()
	return packed.Bytes()
}

func unpack(packed []byte, most int64) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking it: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(reader, most+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking it: %w", err)
	}
	if int64(len(answer)) > most {
		return nil, tooLargeError{most}
	}
	return answer, nil
}
