package geocode

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tidwall/gjson"
)

// Point is a position, in degrees.
type Point struct {
	Latitude, Longitude float64
}

// errNoPosition is an answer from which no position can be read.
var errNoPosition = errors.New("no position was found for it; check the spelling, or give street, town and country")

// findPoint asks the memory, then the geocoder.
func (c *Client) findPoint(ctx context.Context, address string) (Point, error) {
	kept := answerKey(c.base.String(), "point", address)
	if point, err := parsePoint(c.answers.recall(ctx, kept)); err == nil {
		return point, nil
	}
	point, err := c.askPoint(ctx, address)
	if err == nil {
		c.answers.keep(ctx, kept, point.answer())
	}
	return point, err
}

// answer is the shortest answer that gives the point: nothing of the address is in it.
func (p Point) answer() []byte {
	degrees := func(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
	return fmt.Appendf(nil, `[{"lat":%q,"lon":%q}]`, degrees(p.Latitude), degrees(p.Longitude))
}

// askPoint asks once without and, when that gives nothing, once with the details
// of the address. The first failure is the one that counts.
func (c *Client) askPoint(ctx context.Context, address string) (Point, error) {
	point, primary := c.requestPoint(ctx, address, "0")
	if primary == nil || ctx.Err() != nil {
		return point, primary
	}
	point, err := c.requestPoint(ctx, address, "1")
	if errors.Is(err, errNoPosition) {
		return Point{}, primary
	}
	return point, err
}

func (c *Client) requestPoint(ctx context.Context, address, details string) (Point, error) {
	body, err := c.get(ctx, []parameter{
		{"q", address}, {"format", "json"}, {"limit", "1"}, {"addressdetails", details},
	})
	if err != nil {
		return Point{}, err
	}
	point, err := parsePoint(body)
	if err != nil {
		return Point{}, fmt.Errorf("%s: %w", c.base.Host, err)
	}
	return point, nil
}

// parsePoint reads the position of the first item of an answer.
func parsePoint(body []byte) (Point, error) {
	items, err := parseItems(body)
	if err != nil {
		return Point{}, err
	}
	if len(items) > 0 && items[0].IsObject() {
		if point, ok := itemPoint(items[0]); ok {
			return point, nil
		}
	}
	return Point{}, errNoPosition
}

// itemPoint returns the item's own position, or the centre of its bounding box.
func itemPoint(item gjson.Result) (Point, bool) {
	latitude, hasLatitude := parseDegrees(item.Get("lat"))
	longitude, hasLongitude := parseDegrees(item.Get("lon"))
	if point := (Point{latitude, longitude}); hasLatitude && hasLongitude && point.onEarth() {
		return point, true
	}
	around, ok := parseBoundingBox(item)
	if !ok {
		return Point{}, false
	}
	center := Point{(around.south + around.north) / 2, (around.west + around.east) / 2}
	return center, center.onEarth()
}

func (p Point) onEarth() bool {
	return math.Abs(p.Latitude) <= 90 && math.Abs(p.Longitude) <= 180
}
