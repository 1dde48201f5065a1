package market

import "slices"

// OrderChild is an order inside a private message.
type OrderChild struct {
	Order Order
	// Sender is the author of the rumor: the only one whom a private message
	// proves.
	Sender string
}

// Fits reports whether the child may count (spec 50 §18). Ours always do. Of
// others, a seller sends orders by his identity, a buyer orders by a trade key;
// without this rule a buyer could put a seller's offer into the thread, and a
// seller a buyer's. Controls tells the keys that are ours in this trade.
func (c OrderChild) Fits(ours string, controls func(pubkey string) bool) bool {
	if c.Sender == ours {
		return true
	}
	listing, usable := c.Order.Listing()
	author := c.Order.Event.PubKey
	return usable && (author == listing.PubKey) == (c.Sender == listing.PubKey) && !controls(author)
}

// TradeFacts are what is known of a trade from elsewhere than its public orders:
// whoever has seen one of those knows the trade id and can publish another.
type TradeFacts struct {
	// ListingOwner is the owner of the listing that the trade is about.
	ListingOwner string
	// Ours is our identity, Controlled are all keys of ours in this trade.
	Ours       string
	Controlled []string
	// Sent is true when we have sent an order of the trade.
	Sent bool
	// IsEscrow tells that we are an escrow by trade.
	IsEscrow bool
	// Children are the order children of our two-party threads of this trade id.
	Children []OrderChild
}

// TrustedAuthors returns whose public orders belong to the trade (spec 50 §17):
// the seller, ourselves and, when we are the seller, whoever signed the orders that
// one guest has sent us. If two people claim the trade id, neither counts.
func (f TradeFacts) TrustedAuthors() []string {
	trusted := append([]string{f.ListingOwner, f.Ours}, f.Controlled...)
	if f.ListingOwner == f.Ours {
		trusted = append(trusted, f.guestAuthors()...)
	}
	return sortedUnique(trusted)
}

func (f TradeFacts) guestAuthors() []string {
	controls := func(pubkey string) bool { return pubkey == f.Ours || slices.Contains(f.Controlled, pubkey) }
	var guest string
	var authors []string
	for _, child := range f.Children {
		listing, _ := child.Order.Listing()
		if child.Sender == f.Ours || listing.PubKey != f.Ours || !child.Fits(f.Ours, controls) {
			continue
		}
		if guest != "" && guest != child.Sender {
			return nil
		}
		guest = child.Sender
		authors = append(authors, child.Order.Event.PubKey)
	}
	return authors
}
