package trades

import "slices"

const (
	// maxTrades bounds the trades that are followed: anybody can send us orders with any
	// trade id.
	maxTrades = 16_000
	// maxClaims bounds those of them that are one sender's claims.
	maxClaims = 500
)

// claims are trades that are known from the messages of others alone. They make room
// for one another when there are too many, so that nobody can keep the messages of
// others from being heard.
type claims struct {
	// all and bySender are in order of arrival. Some are no claims any more.
	all      []*trade
	bySender map[string][]*trade
}

// isClaim reports whether there is neither a public order of the trade nor one that we
// have sent.
func (t *trade) isClaim() bool { return !t.gone && !t.sent && len(t.groups) == 0 }

func (c *claims) add(t *trade, sender string) {
	if c.bySender == nil {
		c.bySender = map[string][]*trade{}
	}
	c.all = append(c.all, t)
	c.bySender[sender] = append(c.bySender[sender], t)
}

// oldest returns the oldest claim of all, nil when there is none.
func (c *claims) oldest() *trade {
	for len(c.all) > 0 && !c.all[0].isClaim() {
		c.all[0] = nil // The list's memory outlives it.
		c.all = c.all[1:]
	}
	if len(c.all) == 0 {
		return nil
	}
	return c.all[0]
}

// surplus returns the oldest claim of a sender who has as many as he may, else nil.
func (c *claims) surplus(sender string, limit int) *trade {
	if len(c.bySender[sender]) < limit {
		return nil
	}
	left := slices.DeleteFunc(c.bySender[sender], func(t *trade) bool { return !t.isClaim() })
	c.bySender[sender] = left
	if len(left) < limit {
		return nil
	}
	return left[0]
}
