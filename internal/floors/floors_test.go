// Package floors holds the test that keeps the house in shape: a package may
// import what stands below it, never beside or above (design, "The way data goes").
package floors

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// floorOf lists every room, from the ground up. A package that is missing here
// fails the test, so a new room is given its floor on purpose.
var floorOf = map[string]int{
	"internal/fault":    0,
	"internal/trace":    0,
	"internal/jsontext": 0,

	"internal/redact":     1,
	"internal/money":      1,
	"internal/location":   1,
	"internal/derivation": 2,
	"internal/flight":     1,
	"internal/turns":      1,
	"internal/mediatype":  1,
	"internal/nip44guard": 1,

	"internal/request": 2,
	"internal/market":  2,
	"internal/logsink": 2,

	"internal/input":     3,
	"internal/giftwrap":  3,
	"catalog/definition": 2,
	"catalog":            3,

	"internal/environment": 4,
	"internal/relay":       4,
	"internal/store":       4,
	"internal/geocode":     4,
	"internal/evm":         4,
	"internal/boltz":       4,
	"internal/secrets":     4,
	"internal/qr":          4,
	"internal/blossom":     4,
	"internal/imagesource": 4,

	"internal/signer": 5,

	"internal/relaylists": 6,
	"internal/media":      6,
	"internal/seeds":      6,
	"internal/sellers":    6,
	"internal/inbox":      6,
	"internal/orders":     6,
	"internal/threads":    6,
	"internal/trades":     6,

	"internal/profiles": 6,
	"internal/listings": 6,

	"internal/sessions": 7,
	"internal/runtime":  8,

	"internal/actions": 9,

	"internal/daemon":   10,
	"internal/terminal": 10,
	"internal/doctor":   10,

	"cmd/hostr-daemon": 11,
}

// outside lists what stands beside the house: nothing of the daemon imports it,
// and it imports only the pure floors, up to pureFloor.
var outside = []string{"hostr-daemon", "internal/sandbox", "cmd/hostr-sandbox", "catalog/generate", "internal/floors", "scripts"}

// pureFloor is the highest floor without I/O.
const pureFloor = 3

type listedPackage struct {
	ImportPath string
	Imports    []string
}

func TestImportsOnlyGoDownwards(t *testing.T) {
	t.Parallel()
	for _, pkg := range listPackages(t) {
		name := strings.TrimPrefix(pkg.ImportPath, "hostr-daemon/")
		floor, placed := floorOf[name]
		if !placed && !isOutside(name) {
			t.Errorf("%s has no floor: add it to floorOf", name)
			continue
		}
		for _, imported := range pkg.Imports {
			below, ours := strings.CutPrefix(imported, "hostr-daemon/")
			if !ours {
				continue
			}
			checkImport(t, name, placed, floor, below)
		}
	}
}

func checkImport(t *testing.T, name string, placed bool, floor int, imported string) {
	t.Helper()
	switch {
	case !placed && isOutside(imported):
	case !placed && floorOf[imported] > pureFloor:
		t.Errorf("%s stands outside the house and may import only its ground floors, not %s", name, imported)
	case placed && isOutside(imported):
		t.Errorf("%s imports %s, which is for tests and newcomers only", name, imported)
	case placed && floorOf[imported] >= floor:
		t.Errorf("%s (floor %d) imports %s (floor %d): imports only go downwards", name, floor, imported, floorOf[imported])
	}
}

func isOutside(name string) bool {
	for _, prefix := range outside {
		if name == prefix || strings.HasPrefix(name, prefix+"/") {
			return true
		}
	}
	return false
}

func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "hostr-daemon/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listedPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var pkg listedPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list printed unreadable JSON: %v", err)
		}
		packages = append(packages, pkg)
	}
}
