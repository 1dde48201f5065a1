package media

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"hostr-daemon/internal/blossom"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/imagesource"
	"hostr-daemon/internal/input"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/mediatype"
)

// readsAtOnce is how many images of one listing are read at a time.
const readsAtOnce = 4

// ImageReader reads images from where callers say they are (internal/imagesource).
type ImageReader interface {
	Resolve(image imagesource.Reference) (imagesource.Source, error)
	Read(ctx context.Context, source imagesource.Source, allow func(bytes int) error) (imagesource.Image, error)
}

// ListingImages puts the images of an account's listings on the environment's Blossom
// servers. It is safe for concurrent use.
type ListingImages struct {
	service *Service
	signer  Signer
}

// ListingImages returns the images of the account that the signer signs as.
func (s *Service) ListingImages(signer Signer) *ListingImages {
	return &ListingImages{service: s, signer: signer}
}

// Materialize reads all images, then uploads them in their order, each file once, signed by
// the account: one signature per file. It returns what a listing says of them and what
// a preview lists, both in the order of the images (spec 40 §9).
//
// Nothing is read before every source is found good and allowed, and nothing is
// uploaded before everything is read and found to be an image. Of several images that
// fail, the first one is told: the path of the error is images[i] or a property of it.
// All images together may have 128 MiB (image_too_large, path images).
//
// Errors are those of imagesource.Reader, image_upload_failed with a []blossom.Failure
// as details, busy when too many images are on their way, what the signer says, and
// the cause of ctx.
func (l *ListingImages) Materialize(ctx context.Context, images []input.Image) (market.ImageSet, []market.PlannedUpload, error) {
	sources, err := l.service.resolve(images)
	if err != nil {
		return market.ImageSet{}, nil, err
	}
	allowance := l.service.memory.open()
	defer allowance.release()
	read, err := l.service.readAll(ctx, sources, allowance)
	if err != nil {
		return market.ImageSet{}, nil, err
	}
	return l.upload(ctx, images, sources, read, allowance)
}

func (s *Service) resolve(images []input.Image) ([]imagesource.Source, error) {
	sources := make([]imagesource.Source, len(images))
	for i, image := range images {
		var err error
		if sources[i], err = s.reader.Resolve(imagesource.Reference{
			URL: image.URL, Path: image.Path, DataURL: image.DataURL, Base64: image.Base64,
			Filename: image.Filename, MIME: image.MIME,
		}); err != nil {
			return nil, ofImage(i, err)
		}
	}
	return sources, nil
}

// ofImage says which image a failure is about; images are counted from 1 for people.
func ofImage(index int, err error) error {
	var failure *fault.Error
	if !errors.As(err, &failure) {
		return fmt.Errorf("image %d: %w", index+1, err)
	}
	if failure.Path == wholeList {
		return failure
	}
	path := fmt.Sprintf("%s[%d]", wholeList, index)
	if failure.Path != "" {
		path += "." + failure.Path
	}
	located := failure.At(path)
	located.Message = fmt.Sprintf("Image %d: %s", index+1, failure.Message)
	return located
}

// readAll reads several images at a time. A failure ends the reading of those behind
// it, but not of those in front, which might fail as well and then be told instead.
func (s *Service) readAll(ctx context.Context, sources []imagesource.Source, allowance *allowance) ([]imagesource.Image, error) {
	reading := &readings{images: make([]imagesource.Image, len(sources)), failed: len(sources), cancels: map[int]context.CancelFunc{}}
	var readers sync.WaitGroup
	for range min(readsAtOnce, len(sources)) {
		readers.Go(func() {
			for {
				ctx, index, more := reading.next(ctx)
				if !more {
					return
				}
				image, err := s.readOne(ctx, sources[index], allowance)
				reading.done(index, image, err)
			}
		})
	}
	readers.Wait()
	if reading.err != nil {
		return nil, ofImage(reading.failed, reading.err)
	}
	return reading.images, nil
}

// readOne makes a panic over bytes from outside the failure of one image.
func (s *Service) readOne(ctx context.Context, source imagesource.Source, allowance *allowance) (image imagesource.Image, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("reading it went wrong inside the daemon: %v", problem)
		}
	}()
	return s.reader.Read(ctx, source, allowance.take)
}

// readings are the images of one listing while they are read.
type readings struct {
	mu     sync.Mutex
	begun  int
	images []imagesource.Image
	// failed is the first image that failed with err; their number while none has.
	failed  int
	err     error
	cancels map[int]context.CancelFunc
}

// next returns the next image to read, unless one in front of it has failed.
func (r *readings) next(ctx context.Context) (reading context.Context, index int, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun >= r.failed {
		return nil, 0, false
	}
	index = r.begun
	r.begun++
	reading, r.cancels[index] = context.WithCancel(ctx)
	return reading, index, true
}

func (r *readings) done(index int, image imagesource.Image, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancels[index]()
	delete(r.cancels, index)
	r.images[index] = image
	if err == nil || index >= r.failed {
		return
	}
	r.failed, r.err = index, err
	for later, cancel := range r.cancels {
		if later > index {
			cancel()
		}
	}
}

// upload lets go of each image once it is uploaded: the next one may have to wait for a
// person who signs.
func (l *ListingImages) upload(ctx context.Context, images []input.Image, sources []imagesource.Source, read []imagesource.Image, allowance *allowance) (market.ImageSet, []market.PlannedUpload, error) {
	var set market.ImageSet
	uploads := []market.PlannedUpload{}
	stored := map[string]blossom.Descriptor{} // by hash of what was read
	for i, image := range read {
		blob := blossom.NewBlob(image.Content, image.MIME, images[i].Filename)
		descriptor, again := stored[blob.SHA256()]
		if !again {
			var err error
			if descriptor, err = l.service.blossom.Upload(ctx, blob, l.signer); err != nil {
				return market.ImageSet{}, nil, notUploaded(i, err)
			}
			stored[blob.SHA256()] = descriptor
		}
		set.URLs = append(set.URLs, descriptor.URL)
		set.Metadata = append(set.Metadata, market.ImageMetadata{
			URL: descriptor.URL, MIME: cmp.Or(mediatype.Image(descriptor.Type), blob.MIME()), SHA256: descriptor.SHA256, Size: &descriptor.Size, Alt: images[i].Alt,
		})
		uploads = append(uploads, plannedUpload(sources[i], blob))
		read[i] = imagesource.Image{}
		allowance.hold(-cap(image.Content))
	}
	return set, uploads, nil
}

// notUploaded says which image no server took. What else may go wrong, with the signer
// above all, is not about one image and stays as it is.
func notUploaded(index int, err error) error {
	var failure *fault.Error
	if !errors.As(err, &failure) || failure.Code != fault.ImageUploadFailed {
		return fmt.Errorf("uploading image %d: %w", index+1, err)
	}
	numbered := *failure
	numbered.Message = fmt.Sprintf("Image %d: %s", index+1, failure.Message)
	return &numbered
}

func plannedUpload(source imagesource.Source, blob blossom.Blob) market.PlannedUpload {
	planned := market.PlannedUpload{
		Source: string(source.Kind), SHA256: blob.SHA256(), Size: int64(blob.Size()), MIME: blob.MIME(), Filename: blob.Filename(),
	}
	switch source.Kind {
	case imagesource.KindPath:
		planned.Path = source.Location
	case imagesource.KindURL:
		planned.URL = source.Location
	}
	return planned
}
