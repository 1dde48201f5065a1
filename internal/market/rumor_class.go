package market

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nbd-wtf/go-nostr"
)

// RumorClass is what a message is to the thread it belongs to (spec 60 §4.2).
type RumorClass string

// The classes of messages.
const (
	// ClassText is a text message.
	ClassText RumorClass = "text"
	// ClassJSON is a message that carries an event, its Child.
	ClassJSON RumorClass = "json"
	// ClassSeen is a receipt; it stands in no thread's events.
	ClassSeen RumorClass = "seen"
	// ClassTyped is a bare event of a kind that Hostr knows.
	ClassTyped RumorClass = "typed"
	// ClassOther is anything else; it stands in the inbox list only.
	ClassOther RumorClass = "other"
)

// ErrNotRumor is in the error of a message that has to be dropped.
var ErrNotRumor = errors.New("the message cannot be used")

// typedKinds are the kinds that stand in a thread as they are. A child may be of these
// and of the kinds of messages.
var typedKinds = map[int]bool{
	KindOrder: true, KindOrderTransition: true, KindHeartbeat: true, KindSeenMessages: true,
	KindEscrowServiceSelected: true, KindEscrowService: true, KindSellerConfiguration: true, KindListing: true,
	KindReview: true, nostr.KindBadgeAward: true, nostr.KindBadgeDefinition: true, nostr.KindProfileMetadata: true,
}

// ReadRumor classifies an event whose author has been proved (spec 60 §4.2). It takes
// the id that the event should have, whatever it has (spec 60 §4.3, Q3), and leaves
// the event as it is. A message of which Hostr can make nothing is an ErrNotRumor, to
// be dropped.
func ReadRumor(event *nostr.Event) (Rumor, error) {
	if event == nil {
		return Rumor{}, fmt.Errorf("%w: there is none", ErrNotRumor)
	}
	unsigned := *event
	unsigned.ID, unsigned.Sig = event.GetID(), ""
	rumor := Rumor{Event: &unsigned}
	var err error
	switch {
	case event.Kind == KindTextMessage:
		if err := rumor.readChild(); err != nil {
			return Rumor{Event: &unsigned, Class: ClassText}, nil
		}
	case event.Kind == KindStructuredMessage:
		err = rumor.readChild()
	case event.Kind == KindSeenReceipt:
		rumor.Class = ClassSeen
	case typedKinds[event.Kind]:
		rumor.Class = ClassTyped
		err = rumor.readTyped(rumor.Event)
	default:
		rumor.Class = ClassOther
	}
	if err != nil {
		return Rumor{}, fmt.Errorf("%w: kind %d: %w", ErrNotRumor, event.Kind, err)
	}
	return rumor, nil
}

// readChild makes it a message with a child.
func (r *Rumor) readChild() error {
	if !strings.HasPrefix(strings.TrimLeft(r.Event.Content, " \t\r\n"), "{") {
		return errors.New("its content is no event")
	}
	child, err := DecodeEmbeddedEvent(r.Event.Content)
	if err != nil {
		return err
	}
	isMessage := child.Kind == KindTextMessage || child.Kind == KindStructuredMessage || child.Kind == KindSeenReceipt
	if !isMessage && !typedKinds[child.Kind] {
		return fmt.Errorf("an event of kind %d cannot be sent in a message", child.Kind)
	}
	r.Class, r.Child = ClassJSON, child
	return r.readTyped(child)
}

// readTyped reads the event where its kind matters in a thread. Others are opaque.
func (r *Rumor) readTyped(event *nostr.Event) error {
	switch event.Kind {
	case KindOrder:
		order, err := DecodeOrder(event)
		r.Order = &order
		return err
	case KindEscrowServiceSelected:
		selection, err := DecodeEscrowSelection(event)
		r.Selection = &selection
		return err
	default:
		return nil
	}
}

// OrderChild returns the order that the message carries; false when it carries none.
func (r Rumor) OrderChild() (OrderChild, bool) {
	if r.Class != ClassJSON || r.Order == nil {
		return OrderChild{}, false
	}
	return OrderChild{Order: *r.Order, Sender: r.Event.PubKey}, true
}

// OrderChildFits reports whether the message carries an order that counts for the
// account me, see OrderChild.Fits. The function tells whether a key is the account's
// own one of that trade.
func OrderChildFits(r Rumor, me string, controls func(pubkey, tradeID string) bool) bool {
	child, ok := r.OrderChild()
	return ok && child.Fits(me, func(pubkey string) bool { return pubkey == me || controls(pubkey, child.Order.TradeID) })
}
