package imagesource

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"hostr-daemon/internal/fault"
)

// resolveFile takes a text that is no URL of the web for a path, if the operator
// allows files at all. The property is where it stood. Whether the file exists is not
// looked at, so that a refusal does not tell.
func (r *Reader) resolveFile(text, property, declared string) (Source, error) {
	if !r.files {
		return Source{}, fault.New(fault.InvalidImageURL, "The image is named by something that is neither an HTTP(S) URL nor a data URL, and files of the daemon's machine are not read.").
			At(property).WithHint(waysThatWork)
	}
	file := text
	if hasScheme(text, "file:") {
		var err error
		if file, err = filePath(text); err != nil {
			return Source{}, fault.New(fault.InvalidImageURL, "The file URL of the image is no good: %w.", err).At(property).
				WithHint("Write it as file:///home/me/front.jpg.")
		}
	}
	return Source{Kind: KindPath, Location: text, file: file, property: property, declared: declared, filename: file}, nil
}

// filePath returns the path of a file URL (RFC 8089).
func filePath(text string) (string, error) {
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("it is malformed")
	case parsed.Host != "" && !strings.EqualFold(parsed.Host, "localhost"):
		return "", errors.New("it names another machine")
	case parsed.Path == "":
		return "", errors.New("it names no file")
	}
	path := parsed.Path
	if runtime.GOOS == "windows" && filepath.VolumeName(path[1:]) != "" {
		path = path[1:] // /C:/front.jpg
	}
	return filepath.FromSlash(path), nil
}

func readFile(source Source, allow func(int) error) ([]byte, error) {
	found, err := os.Stat(source.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.ImageNotFound, "There is no file %s.", source.file).WithHint("Check the path; it counts from where the daemon runs.")
	case err != nil:
		return nil, unreadable(source, err)
	case !found.Mode().IsRegular(): // a pipe would be waited for, a device has no end
		return nil, fault.New(fault.InvalidImage, "%s is no file.", source.file)
	case found.Size() > MaxBytes:
		return nil, tooLarge(source)
	}
	file, err := os.Open(source.file)
	if err != nil {
		return nil, unreadable(source, err)
	}
	defer file.Close()
	content, err := readUpToLimit(file, found.Size(), allow)
	var refused refusedByCaller
	switch {
	case errors.As(err, &refused):
		return nil, refused.error
	case errors.Is(err, errTooLarge):
		return nil, tooLarge(source)
	case err != nil:
		return nil, unreadable(source, err)
	}
	return content, nil
}

func unreadable(source Source, err error) *fault.Error {
	var reason *fs.PathError
	if errors.As(err, &reason) {
		err = reason.Err
	}
	return fault.New(fault.InvalidImage, "The file %s cannot be read: %w.", source.file, err)
}
