// Package media puts pictures on the environment's Blossom servers: those that callers
// send along (uploadImage, spec 20 §11), signed by an account where there is one and
// unsigned otherwise or when that fails, and those of listings, signed always (spec 40
// §9).
//
// It knows how long a caller can wait and how much may be in memory. It must never
// itself read anything by name, from a disk or a network, nor know who the account is.
package media

import (
	"context"
	"fmt"
	"mime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/blossom"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/mediatype"
	"hostr-daemon/internal/redact"
)

const (
	// uploadTimeout bounds an upload with all its attempts: the bridge gives up after
	// 120 s and then uploads the picture itself.
	uploadTimeout = 100 * time.Second
	// signingShare is the part of the time, in percent, in which the account must have
	// signed, and signedShare that in which the signed upload must be done. The rest is
	// for the unsigned one.
	signingShare = 45
	signedShare  = 75
)

// Blossom is the client of the environment's servers (internal/blossom).
type Blossom interface {
	Upload(ctx context.Context, blob blossom.Blob, signer blossom.EventSigner) (blossom.Descriptor, error)
	UploadUnsigned(ctx context.Context, blob blossom.Blob) (blossom.Descriptor, error)
}

// Signer signs as the account that uploads. It may take as long as a person with a
// phone takes.
type Signer interface {
	SignEvent(ctx context.Context, event *nostr.Event) error
}

// Service uploads for every session of an environment. It runs nothing of its own
// and is safe for concurrent use.
type Service struct {
	blossom Blossom
	reader  ImageReader
	memory  *memory
	log     zerolog.Logger
	timeout time.Duration
}

// New returns the service that uploads with the client what callers send along and,
// for listings, what the reader reads.
func New(client Blossom, reader ImageReader, logger zerolog.Logger) *Service {
	return &Service{
		blossom: client,
		reader:  reader,
		memory:  &memory{perListing: listingBytes, total: memoryBytes, large: largeBytes, free: debug.FreeOSMemory},
		log:     logger,
		timeout: uploadTimeout,
	}
}

// UploadRequest is a file as a caller sends it.
type UploadRequest struct {
	// Base64 is the content: standard or URL-safe alphabet with padding, white space
	// anywhere.
	Base64 string
	// MIME is the media type; when it is blank or none, the content tells.
	MIME string
	// Filename may be blank.
	Filename string
}

// Upload decodes the file and puts it on the first Blossom server that takes it:
// signed if signer is not nil and, whatever goes wrong with that, unsigned. It takes
// 100 seconds at most.
//
// Errors are invalid_upload_base64 (path base64), invalid_upload (path file) for a
// file without content, image_upload_failed with what each server answered as
// details, and the cause of ctx.
func (s *Service) Upload(ctx context.Context, request UploadRequest, signer Signer) (Uploaded, error) {
	content, err := decodeBase64(request.Base64)
	if err != nil {
		return Uploaded{}, err
	}
	if len(content) == 0 {
		return Uploaded{}, fault.New(fault.InvalidUpload, "The file to upload is empty.").At("file").
			WithHint("Send the bytes of the file as base64.")
	}
	held := s.memory.open()
	held.hold(cap(content))
	defer held.release()
	blob := blossom.NewBlob(content, mediaType(request.MIME, content), request.Filename)
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errTooSlow(s.timeout))
	defer cancel()
	if signer != nil {
		descriptor, err := s.uploadSigned(ctx, blob, signer)
		if err == nil {
			return Uploaded{Descriptor: descriptor, Filename: blob.Filename(), Signed: true}, nil
		}
		if ctx.Err() != nil {
			return Uploaded{}, fmt.Errorf("the signed upload was given up: %w", context.Cause(ctx))
		}
		s.log.Info().Str("reason", redact.Error(err)).Msg("the signed upload failed; uploading unsigned")
	}
	descriptor, err := s.blossom.UploadUnsigned(ctx, blob)
	if err != nil {
		return Uploaded{}, fmt.Errorf("uploading %d bytes: %w", blob.Size(), err)
	}
	return Uploaded{Descriptor: descriptor, Filename: blob.Filename()}, nil
}

// mediaType returns the type that was given if it is one, else what the content
// shows, else "".
func mediaType(given string, content []byte) string {
	given = strings.TrimSpace(given)
	if _, _, err := mime.ParseMediaType(given); err == nil && strings.Contains(given, "/") {
		return given
	}
	return mediatype.Sniff(content)
}

func errTooSlow(timeout time.Duration) error {
	return fault.New(fault.ImageUploadFailed, "No Blossom server took the file within %s.", timeout).
		WithHint("Try again later, or with a smaller file.").Transient()
}

// uploadSigned leaves enough of the time for the unsigned upload. ctx has a deadline.
func (s *Service) uploadSigned(ctx context.Context, blob blossom.Blob, signer Signer) (blossom.Descriptor, error) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	ctx, cancel := context.WithTimeout(ctx, left*signedShare/100)
	defer cancel()
	return s.blossom.Upload(ctx, blob, hastySigner{signer, left * signingShare / 100})
}

// hastySigner gives a signer so much time and no more.
type hastySigner struct {
	signer Signer
	limit  time.Duration
}

// SignEvent implements blossom.EventSigner.
func (s hastySigner) SignEvent(ctx context.Context, event *nostr.Event) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	return s.signer.SignEvent(ctx, event)
}
