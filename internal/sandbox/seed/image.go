package seed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"image/png"
)

// Image is a picture of a listing on a Blossom server.
type Image struct {
	URL    string
	SHA256 string
	Size   int
	Alt    string
}

// Picture is a picture before it is stored anywhere.
type Picture struct {
	PNG []byte
	Alt string
}

// pictureWidth and pictureHeight are in pixels.
const (
	pictureWidth  = 48
	pictureHeight = 32
)

// NewPictures draws n small pictures: a sky, a sun and a house, in colours that
// the seed decides.
func NewPictures(seed int64, n int) ([]Picture, error) {
	views := []string{"The house from the garden", "View from the window", "The bedroom", "The terrace", "The kitchen"}
	pictures := make([]Picture, n)
	for i := range pictures {
		var encoded bytes.Buffer
		if err := png.Encode(&encoded, draw(digest(seed, "picture", i))); err != nil {
			return nil, fmt.Errorf("picture %d: %w", i, err)
		}
		pictures[i] = Picture{PNG: encoded.Bytes(), Alt: views[i%len(views)]}
	}
	return pictures, nil
}

// At returns the picture as it can be seen at url.
func (p Picture) At(url string) Image {
	sum := sha256.Sum256(p.PNG)
	return Image{URL: url, SHA256: hex.EncodeToString(sum[:]), Size: len(p.PNG), Alt: p.Alt}
}

func draw(paint [32]byte) image.Image {
	colour := func(i int) color.RGBA { return color.RGBA{paint[i], paint[i+1], paint[i+2], 255} }
	palette := color.Palette{colour(0), colour(3), colour(6), colour(9)}
	canvas := image.NewPaletted(image.Rect(0, 0, pictureWidth, pictureHeight), palette)
	sunX, sunY := 6+int(paint[12])%36, 4+int(paint[13])%8
	left, wide := 4+int(paint[14])%20, 12+int(paint[15])%12
	for y := range pictureHeight {
		for x := range pictureWidth {
			switch {
			case x >= left && x < left+wide && y >= 14 && y < 26:
				canvas.SetColorIndex(x, y, 3)
			case y >= 22:
				canvas.SetColorIndex(x, y, 1)
			case (x-sunX)*(x-sunX)+(y-sunY)*(y-sunY) <= 9:
				canvas.SetColorIndex(x, y, 2)
			}
		}
	}
	return canvas
}
