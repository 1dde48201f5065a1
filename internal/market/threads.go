package market

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nbd-wtf/go-nostr"
)

// Threads reduces an account's messages to threads (spec 60 §7). It is not safe for
// concurrent use, but the Threads and lists it returns never change and may be read by
// anybody. It reads no clock; what it holds depends on the messages and, where their
// times are equal and for the order of threads, on their order of arrival.
type Threads struct {
	me       string
	controls func(pubkey, tradeID string) bool
	live     bool
	known    map[string]bool // ids of rumors
	inbox    []Rumor
	created  []*conversation
	byAnchor map[string]*conversation
}

// conversation is a thread under construction.
type conversation struct {
	empty *Thread // identity only
	// events and receipts are what was received, in order of arrival.
	events, receipts []Rumor
	// seenUntil is the newest mark of the account itself, Unix seconds.
	seenUntil nostr.Timestamp
	// current is the thread as it stands; nil after a change.
	current *Thread
}

// NewThreads returns the threads of the account me, none yet. The function tells
// whether a key is the account's own key of that trade.
func NewThreads(me string, controls func(pubkey, tradeID string) bool) *Threads {
	return &Threads{
		me: me, controls: controls, known: map[string]bool{}, byAnchor: map[string]*conversation{},
	}
}

// Add takes a message in; false when one of its id is there already (spec 60 §7.1).
func (t *Threads) Add(rumor Rumor) (added bool) {
	if t.known[rumor.Event.ID] {
		return false
	}
	t.known[rumor.Event.ID] = true
	t.inbox = append(t.inbox, rumor)
	thread := t.conversationOf(rumor.Event)
	switch rumor.Class {
	case ClassSeen:
		thread.receipts = append(thread.receipts, rumor)
		if until, ok := seenUntil(rumor.Event); ok && rumor.Event.PubKey == t.me {
			thread.seenUntil = max(thread.seenUntil, until)
		}
	case ClassOther:
		return true
	default:
		thread.events = append(thread.events, rumor)
	}
	thread.current = nil
	return true
}

// Live marks what is there at a time as seen: the account's history is read. Only the
// first call does anything (spec 60 §7.3). What is dated more than a minute ahead is not
// seen, else nothing after it would ever be new.
func (t *Threads) Live(now nostr.Timestamp) {
	if t.live {
		return
	}
	t.live = true
	for _, thread := range t.created {
		for _, rumor := range t.thread(thread).readable {
			if rumor.Event.PubKey != t.me && rumor.Event.CreatedAt <= now+maxLead {
				thread.seenUntil = max(thread.seenUntil, rumor.Event.CreatedAt)
			}
		}
		thread.current = nil
	}
}

// Reassess has orders judged anew, for when the account controls other keys than
// before.
func (t *Threads) Reassess() {
	for _, thread := range t.created {
		thread.current = nil
	}
}

// Inbox returns every message in order of arrival.
func (t *Threads) Inbox() []Rumor { return slices.Clip(t.inbox) }

// All returns the threads in order of creation.
func (t *Threads) All() []*Thread {
	threads := make([]*Thread, len(t.created))
	for i, thread := range t.created {
		threads[i] = t.thread(thread)
	}
	return threads
}

// ByAnchor returns the thread of that id, or nil.
func (t *Threads) ByAnchor(anchor string) *Thread {
	if thread, known := t.byAnchor[anchor]; known {
		return t.thread(thread)
	}
	return nil
}

// Resolve finds the thread that is meant by an anchor, by a conversation tag, by the
// others who take part, or by several of these; nil when there is none. "" and nil say
// nothing. The thread need not hold all recipients (spec 60 §9.3, Q13): whoever sends
// to them looks up exactly theirs.
//
// Where the tag is a trade, what its parties have comes before what strangers write
// under its id, which is public after a commit. The parties are those of its public
// orders, nil while they are not known.
func (t *Threads) Resolve(anchor, tag string, recipients, parties []string) *Thread {
	if thread := t.ByAnchor(anchor); thread != nil {
		return thread
	}
	tag = strings.TrimSpace(tag)
	if len(recipients) > 0 {
		if thread := t.ByAnchor(NewThread(t.me, recipients, tag).Anchor); thread != nil {
			return thread
		}
	}
	if tag == "" {
		return nil
	}
	tagged := t.tagged(tag)
	if accepted := filter(tagged, t.ofTrade(tag, parties).holds); len(accepted) > 0 {
		tagged = accepted
	}
	if len(tagged) == 1 || len(recipients) == 0 {
		return mostRecent(tagged)
	}
	including := slices.DeleteFunc(slices.Clone(tagged), func(thread *Thread) bool {
		isMissing := func(recipient string) bool { return !slices.Contains(thread.Participants, recipient) }
		return slices.ContainsFunc(recipients, isMissing)
	})
	if len(including) == 0 {
		including = tagged
	}
	return mostRecent(including)
}

// OfTrade returns the thread of a trade as long as its parties are not known, see
// TradeThread; else the last created with its id as tag; nil when there is none.
func (t *Threads) OfTrade(tradeID string) *Thread {
	if thread := t.TradeThread(tradeID, nil).Thread; thread != nil {
		return thread
	}
	tagged := t.tagged(tradeID)
	if len(tagged) == 0 {
		return nil
	}
	return tagged[len(tagged)-1]
}

// SelectionsOfTrade returns the escrow selections for a trade, the last one of each
// service, by those who take part in the trade's thread (spec 60 §8.3).
func (t *Threads) SelectionsOfTrade(tradeID string) []SelectionMessage {
	thread := t.OfTrade(tradeID)
	if thread == nil {
		return nil
	}
	var sent []SelectionMessage
	for _, tagged := range t.tagged(tradeID) {
		for _, selection := range tagged.selections {
			if slices.Contains(thread.Participants, selection.Rumor.Event.PubKey) {
				sent = append(sent, selection)
			}
		}
	}
	return lastPerService(sent)
}

// tagged returns the threads of that tag in order of creation; none for "".
func (t *Threads) tagged(tag string) []*Thread {
	var threads []*Thread
	for _, thread := range t.created {
		if tag != "" && thread.empty.Tag == tag {
			threads = append(threads, t.thread(thread))
		}
	}
	return threads
}

// mostRecent returns the thread of the latest activity, the later created of several;
// nil of none.
func mostRecent(threads []*Thread) *Thread {
	var recent *Thread
	for _, thread := range threads {
		if recent == nil || thread.lastActivity >= recent.lastActivity {
			recent = thread
		}
	}
	return recent
}

func (t *Threads) conversationOf(event *nostr.Event) *conversation {
	participants, tag := ConversationParticipants(event.PubKey, event.Tags), ConversationTag(event.Tags)
	anchor := ThreadAnchor(participants, tag)
	thread, known := t.byAnchor[anchor]
	if !known {
		thread = &conversation{empty: newThread(t.me, participants, tag, anchor)}
		t.byAnchor[anchor] = thread
		t.created = append(t.created, thread)
	}
	return thread
}

func (t *Threads) thread(thread *conversation) *Thread {
	if thread.current == nil {
		thread.current = thread.reduce(t.me, t.controls)
	}
	return thread.current
}

// seenUntil returns the time up to which a receipt's author has read, Unix seconds;
// false when it does not say.
func seenUntil(receipt *nostr.Event) (nostr.Timestamp, bool) {
	text, _ := firstValue(receipt.Tags, tagSeenUntil)
	seconds, err := strconv.ParseInt(text, 10, 64)
	return nostr.Timestamp(seconds), err == nil
}
