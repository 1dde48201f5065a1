package media_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/blossom"
	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/imagesource"
	"hostr-daemon/internal/input"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/media"
	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/blossomserver"
	"hostr-daemon/internal/signer"
)

// pngPicture is an image whose content differs with its number.
func pngPicture(number int) string { return fmt.Sprintf("\x89PNG\r\n\x1a\npicture %d", number) }

func inBase64(content string) string { return base64.StdEncoding.EncodeToString([]byte(content)) }

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// gallery serves pictures by number at /<number>.png, and counts what is asked for.
type gallery struct {
	*httptest.Server
	asked atomic.Int32
}

func newGallery(t testing.TB) *gallery {
	t.Helper()
	g := &gallery{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		g.asked.Add(1)
		var number int
		if _, err := fmt.Sscanf(request.URL.Path, "/%d.png", &number); err != nil {
			http.NotFound(w, request)
			return
		}
		_, _ = w.Write([]byte(pngPicture(number)))
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gallery) picture(number int) string { return fmt.Sprintf("%s/%d.png", g.URL, number) }

// imageService reads by the rules and uploads to the servers.
func imageService(t testing.TB, rules imagesource.Config, servers ...string) *media.Service {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	reader := imagesource.New(rules)
	t.Cleanup(reader.Close)
	return media.New(blossom.New(blossom.Config{Servers: servers, Transport: transport}), reader, zerolog.Nop())
}

// countingSigner counts what it signs.
type countingSigner struct {
	*signer.Local
	signed atomic.Int32
}

func (s *countingSigner) SignEvent(ctx context.Context, event *nostr.Event) error {
	s.signed.Add(1)
	return s.Local.SignEvent(ctx, event)
}

func puts(server *blossomserver.Server) (count int) {
	for _, request := range server.Switch.Requests() {
		if request.Method == http.MethodPut {
			count++
		}
	}
	return count
}

func TestListingImages(t *testing.T) {
	t.Parallel()
	server, pictures := openServer(t), newGallery(t)
	server.RequireAuthorization(true)
	file := filepath.Join(t.TempDir(), "front.png")
	if err := os.WriteFile(file, []byte(pngPicture(4)), 0o600); err != nil {
		t.Fatal(err)
	}
	service := imageService(t, imagesource.Config{AllowFiles: true, AllowPrivateHosts: true}, server.URL())
	set, planned, err := service.ListingImages(account(t)).Materialize(patient(t), []input.Image{
		{URL: pictures.picture(1), Alt: "The garden"},
		{DataURL: "data:image/webp;base64," + inBase64(pngPicture(2)), Filename: "kitchen.webp"},
		{Base64: inBase64("<svg/>"), MIME: "image/svg+xml", Alt: "A plan"},
		{Path: file, Filename: "front.png"},
	})
	if err != nil {
		t.Fatal(err)
	}
	size := func(content string) *int64 { n := int64(len(content)); return &n }
	at := func(content, extension string) string { return server.URL() + "/" + hashOf(content) + extension }
	one, two, plan, four := pngPicture(1), pngPicture(2), "<svg/>", pngPicture(4)
	want := market.ImageSet{
		URLs: []string{at(one, ".png"), at(two, ".webp"), at(plan, ".svg"), at(four, ".png")},
		Metadata: []market.ImageMetadata{
			{URL: at(one, ".png"), MIME: "image/png", SHA256: hashOf(one), Size: size(one), Alt: "The garden"},
			{URL: at(two, ".webp"), MIME: "image/webp", SHA256: hashOf(two), Size: size(two)},
			{URL: at(plan, ".svg"), MIME: "image/svg+xml", SHA256: hashOf(plan), Size: size(plan), Alt: "A plan"},
			{URL: at(four, ".png"), MIME: "image/png", SHA256: hashOf(four), Size: size(four)},
		},
	}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	wantPlanned(t, planned, fmt.Sprintf(`[
		{"source":"url","sha256":%q,"size":17,"mime":"image/png","dryRunOnly":false,"url":%q},
		{"source":"dataUrl","sha256":%q,"size":17,"mime":"image/webp","dryRunOnly":false,"filename":"kitchen.webp"},
		{"source":"base64","sha256":%q,"size":6,"mime":"image/svg+xml","dryRunOnly":false},
		{"source":"path","sha256":%q,"size":17,"mime":"image/png","dryRunOnly":false,"path":%q,"filename":"front.png"}
	]`, hashOf(one), pictures.picture(1), hashOf(two), hashOf(plan), hashOf(four), file))
	for _, content := range []string{one, two, plan, four} {
		if stored, _, found := server.Get(hashOf(content)); !found || string(stored) != content {
			t.Errorf("the server holds %q, want %q", stored, content)
		}
	}
	if used := service.MemoryInUse(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
}

// wantPlanned compares key by key, in order.
func wantPlanned(t testing.TB, planned []market.PlannedUpload, want string) {
	t.Helper()
	got, err := json.Marshal(planned)
	if err != nil {
		t.Fatal(err)
	}
	want = strings.NewReplacer("\n", "", "\t", "").Replace(want)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("planned uploads (-want +got):\n%s", diff)
	}
}

// The vector of spec 40: a listing's one image, from a URL.
func TestPlannedUploadVector(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../market/testdata/listings-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Create struct {
			Planned json.RawMessage `json:"expectedPlannedUploads"`
		} `json:"create"`
	}
	if err := json.Unmarshal(file, &vectors); err != nil {
		t.Fatal(err)
	}
	var planned []market.PlannedUpload
	if err := json.Unmarshal(vectors.Create.Planned, &planned); err != nil || len(planned) != 1 || planned[0].Size != 67 {
		t.Fatalf("%+v, %v", planned, err)
	}
	wantPlanned(t, planned, strings.ReplaceAll(strings.ReplaceAll(string(vectors.Create.Planned), ": ", ":"), " ", ""))
}

// One file in a call is uploaded, and signed for, once.
func TestEqualImagesAreUploadedOnce(t *testing.T) {
	t.Parallel()
	server, pictures := openServer(t), newGallery(t)
	signs := &countingSigner{Local: account(t)}
	service := imageService(t, imagesource.Config{AllowPrivateHosts: true}, server.URL())
	set, planned, err := service.ListingImages(signs).Materialize(patient(t), []input.Image{
		{URL: pictures.picture(1), Alt: "a"}, {URL: pictures.picture(2)}, {Base64: inBase64(pngPicture(1)), Alt: "b"}, {URL: pictures.picture(1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if puts(server) != 2 || signs.signed.Load() != 2 {
		t.Errorf("%d uploads, %d signatures; want 2 each", puts(server), signs.signed.Load())
	}
	if len(set.URLs) != 4 || set.URLs[0] != set.URLs[2] || set.URLs[0] != set.URLs[3] || set.URLs[0] == set.URLs[1] || len(planned) != 4 {
		t.Errorf("URLs %v, planned %v", set.URLs, planned)
	}
	if set.Metadata[0].Alt != "a" || set.Metadata[2].Alt != "b" || planned[2].Source != "base64" {
		t.Errorf("metadata %+v", set.Metadata)
	}
}

// Whatever is wrong with one image, nothing is uploaded; what can be told without
// reading is told before anything is read. Of several failures the first is told.
func TestOneBadImage(t *testing.T) {
	t.Parallel()
	pictures := newGallery(t)
	text := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write([]byte("hello"))
	}))
	t.Cleanup(text.Close)
	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(imagesource.MaxBytes+1))
	}))
	t.Cleanup(large.Close)
	for name, test := range map[string]struct {
		bad    []input.Image
		code   fault.Code
		path   string
		unread bool
	}{
		"nothing":          {[]input.Image{{Alt: "x"}}, fault.InvalidImage, "images[2]", true},
		"path":             {[]input.Image{{Path: "/etc/hostname"}}, fault.InvalidImageURL, "images[2].path", true},
		"bare path":        {[]input.Image{{URL: "/etc/hostname"}}, fault.InvalidImageURL, "images[2].url", true},
		"file URL":         {[]input.Image{{URL: "file:///etc/hostname"}}, fault.InvalidImageURL, "images[2].url", true},
		"malformed URL":    {[]input.Image{{URL: "http://"}}, fault.InvalidImageURL, "images[2].url", true},
		"data URL":         {[]input.Image{{DataURL: "data:image/png,x"}}, fault.InvalidImageDataURL, "images[2].dataUrl", true},
		"base64":           {[]input.Image{{Base64: "QUJ"}}, fault.InvalidImageBase64, "images[2]", false},
		"data URL's own":   {[]input.Image{{DataURL: "data:image/png;base64,QUJ"}}, fault.InvalidImageBase64, "images[2]", false},
		"not found":        {[]input.Image{{URL: pictures.URL + "/none"}}, fault.ImageDownloadFailed, "images[2].url", false},
		"too large":        {[]input.Image{{URL: large.URL}}, fault.ImageTooLarge, "images[2].url", false},
		"text":             {[]input.Image{{URL: text.URL}}, fault.InvalidImage, "images[2]", false},
		"first of two":     {[]input.Image{{URL: text.URL}, {URL: pictures.URL + "/none"}}, fault.InvalidImage, "images[2]", false},
		"second of two":    {[]input.Image{{URL: pictures.picture(3)}, {URL: pictures.URL + "/none"}}, fault.ImageDownloadFailed, "images[3].url", false},
		"refused beats":    {[]input.Image{{URL: text.URL}, {Path: "a.png"}}, fault.InvalidImageURL, "images[3].path", true},
		"first of refused": {[]input.Image{{URL: "a.png"}, {Path: "a.png"}}, fault.InvalidImageURL, "images[2].url", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, good := openServer(t), newGallery(t)
			images := append([]input.Image{{URL: good.picture(1)}, {Base64: inBase64(pngPicture(2))}}, test.bad...)
			images = append(images, input.Image{URL: good.picture(8)}, input.Image{URL: good.picture(9)})
			service := imageService(t, imagesource.Config{AllowPrivateHosts: true}, server.URL())
			set, planned, err := service.ListingImages(account(t)).Materialize(patient(t), images)
			failure := fault.From(err)
			if err == nil || failure.Code != test.code || failure.Path != test.path || failure.Retryable || set.URLs != nil || planned != nil {
				t.Fatalf("%+v (%v), want %s at %s", failure, err, test.code, test.path)
			}
			if number := "Image " + string(test.path[len("images[")]+1) + ": "; !strings.HasPrefix(failure.Message, number) {
				t.Errorf("message %q does not begin with %q", failure.Message, number)
			}
			if requests := server.Switch.Requests(); len(requests) != 0 {
				t.Errorf("%d requests for Blossom", len(requests))
			}
			if test.unread && good.asked.Load() != 0 {
				t.Errorf("%d images were downloaded", good.asked.Load())
			}
			if used := service.MemoryInUse(); used != 0 {
				t.Errorf("%d bytes are still counted", used)
			}
		})
	}
}

// Spec 40 §17.9: in staging the private target is refused, with the opt-in it works.
func TestPrivateTargets(t *testing.T) {
	t.Parallel()
	server, pictures := openServer(t), newGallery(t)
	images := []input.Image{{Base64: inBase64(pngPicture(2))}, {URL: pictures.picture(1)}}
	_, _, err := imageService(t, imagesource.Config{TrustedServers: []string{server.URL()}}, server.URL()).ListingImages(account(t)).Materialize(patient(t), images)
	if failure := fault.From(err); err == nil || failure.Code != fault.InvalidImageURL || failure.Path != "images[1].url" || puts(server) != 0 || pictures.asked.Load() != 0 {
		t.Errorf("%+v; %d uploads, %d downloads", failure, puts(server), pictures.asked.Load())
	}
	// An image that is on the Blossom server already is re-hosted like any other.
	stored := server.Put([]byte(pngPicture(1)), "image/png", "")
	images[1].URL = stored.URL
	set, _, err := imageService(t, imagesource.Config{TrustedServers: []string{server.URL()}}, server.URL()).ListingImages(account(t)).Materialize(patient(t), images)
	if err != nil || set.URLs[1] != stored.URL || puts(server) != 2 {
		t.Errorf("%v, %v; %d uploads", set.URLs, err, puts(server))
	}
}

// A slow image in front of a bad one is waited for, since it might be bad as well; one
// behind it is not.
func TestFirstFailureIsTold(t *testing.T) {
	t.Parallel()
	begun, givenUp := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/front":
			<-givenUp // so the failure in the middle was seen
			w.WriteHeader(http.StatusGone)
		case "/middle":
			<-begun
			w.WriteHeader(http.StatusTeapot)
		case "/behind":
			close(begun)
			<-request.Context().Done()
			close(givenUp)
		}
	}))
	t.Cleanup(server.Close)
	service := imageService(t, imagesource.Config{AllowPrivateHosts: true}, "http://127.0.0.1:1")
	_, _, err := service.ListingImages(account(t)).Materialize(patient(t), []input.Image{{URL: server.URL + "/front"}, {URL: server.URL + "/middle"}, {URL: server.URL + "/behind"}})
	if failure := fault.From(err); err == nil || failure.Path != "images[0].url" || !strings.Contains(failure.Message, "HTTP 410") {
		t.Errorf("%+v", failure)
	}
}

func TestImagesThatAreTooMuch(t *testing.T) {
	t.Parallel()
	server := openServer(t)
	service := imageService(t, imagesource.Config{}, server.URL())
	images := []input.Image{{Base64: inBase64(pngPicture(1))}, {Base64: inBase64(pngPicture(2))}, {Base64: inBase64(pngPicture(3))}}
	service.SetMemory(40, 1000)
	_, _, err := service.ListingImages(account(t)).Materialize(patient(t), images)
	if failure := fault.From(err); err == nil || failure.Code != fault.ImageTooLarge || failure.Path != "images" || failure.Retryable {
		t.Errorf("%+v", failure)
	}
	if used := service.MemoryInUse(); used != 0 || puts(server) != 0 {
		t.Errorf("%d bytes are still counted, %d uploads", used, puts(server))
	}
	service.SetMemory(1000, 1000)
	if _, _, err := service.ListingImages(account(t)).Materialize(patient(t), images); err != nil {
		t.Error(err)
	}
}

// The oldest call always has room; those that come meanwhile may have to come again.
func TestImagesOfManyCalls(t *testing.T) {
	t.Parallel()
	server := openServer(t)
	service := imageService(t, imagesource.Config{}, server.URL())
	service.SetMemory(60, 100)
	images := []input.Image{{Base64: inBase64(pngPicture(1))}, {Base64: inBase64(pngPicture(2))}, {Base64: inBase64(pngPicture(3))}}
	atSigner, approved, outcome := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	waiting := signerFunc(func(ctx context.Context, event *nostr.Event) error {
		close(atSigner)
		<-approved
		return account(t).SignEvent(ctx, event)
	})
	go func() {
		_, _, err := service.ListingImages(waiting).Materialize(patient(t), images[:1])
		outcome <- err
	}()
	<-atSigner
	_, _, err := service.ListingImages(account(t)).Materialize(patient(t), images)
	if failure := fault.From(err); err == nil || failure.Code != fault.Busy || failure.Path != "images" || !failure.Retryable {
		t.Errorf("%+v", failure)
	}
	if _, _, err := service.ListingImages(account(t)).Materialize(patient(t), images[1:]); err != nil {
		t.Errorf("what there is room for: %v", err)
	}
	close(approved)
	if err := <-outcome; err != nil {
		t.Errorf("the oldest call: %v", err)
	}
	if _, _, err := service.ListingImages(account(t)).Materialize(patient(t), images); err != nil {
		t.Errorf("alone: %v", err)
	}
	if used := service.MemoryInUse(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
}

// Whatever type a server makes up, what a listing says is that of an image.
func TestTypeThatAServerMakesUp(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"image/webp": "image/webp", "IMAGE/PNG; q=1": "image/png", "text/html": "image/png", "x": "image/png", "image/*": "image/png",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"url":"https://example.org/a","type":%q}`, given)
		}))
		t.Cleanup(server.Close)
		set, _, err := imageService(t, imagesource.Config{}, server.URL).ListingImages(account(t)).Materialize(patient(t), []input.Image{{Base64: inBase64(pngPicture(1))}})
		if err != nil || set.Metadata[0].MIME != want {
			t.Errorf("%s: %+v, %v, want %s", given, set.Metadata, err, want)
		}
	}
}

// What is uploaded is let go of before the next signature, which may take a person; the
// last call of those that took much gives it back to the system, once.
func TestMemoryIsGivenBack(t *testing.T) {
	t.Parallel()
	server, pictures := openServer(t), newGallery(t)
	service := imageService(t, imagesource.Config{AllowPrivateHosts: true}, server.URL())
	freed := 0
	service.SetLarge(40, func() { freed++ })
	var held []int64
	signs := signerFunc(func(ctx context.Context, event *nostr.Event) error {
		held = append(held, service.MemoryInUse())
		return account(t).SignEvent(ctx, event)
	})
	images := []input.Image{{Base64: inBase64(pngPicture(1))}, {URL: pictures.picture(2)}, {Base64: inBase64(pngPicture(3))}}
	for range 2 {
		if _, _, err := service.ListingImages(signs).Materialize(patient(t), images); err != nil {
			t.Fatal(err)
		}
	}
	if len(held) != 6 || held[1] >= held[0] || held[2] >= held[1] || held[2] == 0 || held[3] != held[0] {
		t.Errorf("held at the signatures: %v", held)
	}
	if freed != 2 {
		t.Errorf("freed %d times, want once for each call", freed)
	}
	if _, _, err := service.ListingImages(signs).Materialize(patient(t), images[:1]); err != nil || freed != 2 {
		t.Errorf("a small image: freed %d times, %v", freed, err)
	}
	if _, err := service.Upload(patient(t), media.UploadRequest{Base64: inBase64(strings.Repeat("x", 50))}, nil); err != nil || freed != 3 {
		t.Errorf("a large file: freed %d times, %v", freed, err)
	}
	if used := service.MemoryInUse(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
}

// The error of a server, or of the signer, ends the call; what was uploaded stays.
func TestUploadOfListingImagesFails(t *testing.T) {
	t.Parallel()
	refused := &signer.Rejected{Method: "sign_event", Text: "Not authorized"}
	pictures := newGallery(t)
	images := []input.Image{{URL: pictures.picture(1)}, {URL: pictures.picture(2)}}
	for name, test := range map[string]struct {
		faults sandbox.HTTPFaults
		limit  int64
		error  string
	}{
		"out of order": {sandbox.HTTPFaults{Status: http.StatusInternalServerError}, 1000, "HTTP 500"},
		"hangs up":     {sandbox.HTTPFaults{HangUp: true}, 1000, "EOF"},
		"no JSON":      {sandbox.HTTPFaults{NotJSON: true}, 1000, "the answer is no JSON object"},
		"too large":    {sandbox.HTTPFaults{}, 5, "HTTP 413: the blob is larger than this server takes"},
	} {
		server := openServer(t)
		server.Switch.Break(test.faults)
		server.SetMaxBytes(test.limit)
		_, _, err := imageService(t, imagesource.Config{AllowPrivateHosts: true}, server.URL()).ListingImages(account(t)).Materialize(patient(t), images)
		failure := fault.From(err)
		details, _ := failure.Details.([]blossom.Failure)
		if failure.Code != fault.ImageUploadFailed || failure.Path != "" || !strings.HasPrefix(failure.Message, "Image 1: ") ||
			len(details) != 1 || details[0].ServerURL != server.URL() || details[0].Success || !strings.Contains(details[0].Error, test.error) {
			t.Errorf("%s: %+v", name, failure)
		}
	}
	server := openServer(t)
	refusing := signerFunc(func(context.Context, *nostr.Event) error { return refused })
	_, _, err := imageService(t, imagesource.Config{AllowPrivateHosts: true}, server.URL()).ListingImages(refusing).Materialize(patient(t), images)
	var rejected *signer.Rejected
	if !errors.As(err, &rejected) || len(server.Switch.Requests()) != 0 {
		t.Errorf("a signer that refuses: %v", err)
	}
}

// The first server that takes the image counts; the servers behind it are asked to
// mirror it (spec 40 §9.4).
func TestListingImagesAreMirrored(t *testing.T) {
	t.Parallel()
	broken, taking, mirroring := openServer(t), openServer(t), openServer(t)
	broken.Switch.Break(sandbox.HTTPFaults{Status: http.StatusServiceUnavailable})
	service := imageService(t, imagesource.Config{}, broken.URL(), taking.URL(), mirroring.URL())
	set, _, err := service.ListingImages(account(t)).Materialize(patient(t), []input.Image{{Base64: inBase64(pngPicture(1))}})
	if err != nil || set.URLs[0] != taking.URL()+"/"+hashOf(pngPicture(1))+".png" {
		t.Fatalf("%v, %v", set.URLs, err)
	}
	if _, _, found := mirroring.Get(hashOf(pngPicture(1))); !found {
		t.Error("the last server has no copy")
	}
}

func TestCancelledListingImages(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 2)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		begun <- struct{}{}
		<-request.Context().Done()
	}))
	t.Cleanup(silent.Close)
	server := openServer(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(patient(t))
	go func() {
		<-begun
		cancel(enough)
	}()
	service := imageService(t, imagesource.Config{AllowPrivateHosts: true}, server.URL())
	_, _, err := service.ListingImages(account(t)).Materialize(ctx, []input.Image{{URL: silent.URL}, {URL: silent.URL + "/b"}})
	if !errors.Is(err, enough) || len(server.Switch.Requests()) != 0 {
		t.Errorf("%v, want the cause", err)
	}
}

// panickingReader is a reader with a mistake in it.
type panickingReader struct{ media.ImageReader }

func (panickingReader) Resolve(imagesource.Reference) (imagesource.Source, error) {
	return imagesource.Source{}, nil
}

func (panickingReader) Read(context.Context, imagesource.Source, func(int) error) (imagesource.Image, error) {
	panic("out of range")
}

func TestPanicWhileReading(t *testing.T) {
	t.Parallel()
	service := media.New(blossom.New(blossom.Config{}), panickingReader{}, zerolog.Nop())
	_, _, err := service.ListingImages(account(t)).Materialize(patient(t), make([]input.Image, 9))
	if err == nil || !strings.Contains(err.Error(), "image 1: ") || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("%v", err)
	}
}
