package actions

import (
	"context"
	"slices"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/sessions"
	"hostr-daemon/internal/threads"
)

// shownMessages is how many messages a thread is shown with beside a message to it
// (spec 60 §10.3).
const shownMessages = 50

// ThreadViewResult is the result of hostr.thread.view (spec 60 §10.2). A thread that was
// found is in ThreadView, else the two keys after it are there.
type ThreadViewResult struct {
	Found       bool         `json:"found"`
	ThreadView  *ThreadView  `json:"threadView,omitempty"`
	ThreadViews []ThreadView `json:"threadViews,omitzero"`
	Message     string       `json:"message,omitempty"`
}

func threadView(ctx context.Context, caller caller, account *sessions.Account, input ThreadViewInput) (answer[ThreadViewResult], error) {
	service, err := followedThreads(ctx, caller, account, input.TimeoutSeconds)
	if err != nil {
		return answer[ThreadViewResult]{}, err
	}
	found, err := service.Find(ctx, threads.Query{
		Anchor: input.ThreadAnchor, TradeID: input.TradeID, Conversation: input.Conversation, Pubkeys: input.RecipientPubkeys,
	}, seconds(input.TimeoutSeconds))
	if err != nil {
		return answer[ThreadViewResult]{}, err
	}
	if found == nil {
		return answer[ThreadViewResult]{data: ThreadViewResult{
			ThreadViews: []ThreadView{}, Message: "No conversation matches that request.",
		}}, nil
	}
	people, err := service.People(ctx, found)
	if err != nil {
		return answer[ThreadViewResult]{}, err
	}
	view, warning := newThreadView(found, people, account.Pubkey(), input.Limit)
	return answer[ThreadViewResult]{data: ThreadViewResult{Found: true, ThreadView: &view}, warnings: warnings(warning)}, nil
}

// ThreadMessageResult is the result of hostr.thread.message (spec 60 §10.3).
type ThreadMessageResult struct {
	DryRun bool `json:"dryRun"`
	// Content is there in a preview, SentMessage once it was sent.
	Content     string       `json:"content,omitempty"`
	SentMessage *SentMessage `json:"sentMessage,omitempty"`
	// RecipientPubkeys are sorted unless the caller gave them.
	RecipientPubkeys []string   `json:"recipientPubkeys"`
	ThreadView       ThreadView `json:"threadView"`
}

func threadMessage(ctx context.Context, caller caller, account *sessions.Account, input ThreadMessageInput) (answer[ThreadMessageResult], error) {
	if err := threads.CheckText(input.Content); err != nil {
		return answer[ThreadMessageResult]{}, err
	}
	service, err := followedThreads(ctx, caller, account, input.TimeoutSeconds)
	if err != nil {
		return answer[ThreadMessageResult]{}, err
	}
	to, err := service.Address(ctx, threads.Addressee{
		Query: threads.Query{
			Anchor: input.ThreadAnchor, TradeID: input.TradeID, Conversation: input.Conversation, Pubkeys: input.RecipientPubkeys,
		},
		Role: input.RecipientRole, Limit: seconds(input.TimeoutSeconds),
	})
	if err != nil {
		return answer[ThreadMessageResult]{}, err
	}
	thread := to.Thread
	if err := service.CheckSize(thread, input.Content); err != nil {
		return answer[ThreadMessageResult]{}, err
	}
	people, err := service.People(ctx, thread)
	if err != nil {
		return answer[ThreadMessageResult]{}, err
	}
	result := ThreadMessageResult{DryRun: input.DryRun, RecipientPubkeys: to.Recipients}
	if input.DryRun {
		result.Content = input.Content
	} else {
		sent, err := service.Send(ctx, thread, input.Content, seconds(input.TimeoutSeconds))
		if err != nil {
			return answer[ThreadMessageResult]{}, err
		}
		result.SentMessage, thread = newSentMessage(sent.Message), sent.Thread
	}
	view, warning := newThreadView(thread, people, account.Pubkey(), shownMessages)
	result.ThreadView = view
	return answer[ThreadMessageResult]{data: result, warnings: warnings(warning)}, nil
}

// EscrowInvolveResult is the result of hostr.escrow.involve (spec 60 §10.4).
type EscrowInvolveResult struct {
	// DryRun is true whenever nothing was sent.
	DryRun bool `json:"dryRun"`
	// RequiresMessage and Message are there while there is nothing to send, Content in a
	// preview, SentMessage once it was sent.
	RequiresMessage    bool         `json:"requiresMessage,omitempty"`
	Message            string       `json:"message,omitempty"`
	Content            string       `json:"content,omitempty"`
	SentMessage        *SentMessage `json:"sentMessage,omitempty"`
	TradeID            string       `json:"tradeId"`
	ParticipantPubkeys []string     `json:"participantPubkeys"`
	RecipientPubkeys   []string     `json:"recipientPubkeys"`
	ThreadView         ThreadView   `json:"threadView"`
	// Roles are there for the trade's escrow, and then ParticipantPubkeys are theirs.
	Roles *market.GroupRolesResult `json:"roles,omitempty"`
}

func escrowInvolve(ctx context.Context, caller caller, account *sessions.Account, input EscrowInvolveInput) (answer[EscrowInvolveResult], error) {
	if err := threads.CheckText(input.Content); err != nil {
		return answer[EscrowInvolveResult]{}, err
	}
	service, err := followedThreads(ctx, caller, account, input.TimeoutSeconds)
	if err != nil {
		return answer[EscrowInvolveResult]{}, err
	}
	shared, err := service.EscrowThread(ctx, input.TradeID, seconds(input.TimeoutSeconds))
	if err != nil {
		return answer[EscrowInvolveResult]{}, err
	}
	thread := shared.Thread
	if err := service.CheckSize(thread, input.Content); err != nil {
		return answer[EscrowInvolveResult]{}, err
	}
	people, err := service.People(ctx, thread)
	if err != nil {
		return answer[EscrowInvolveResult]{}, err
	}
	result := EscrowInvolveResult{
		DryRun: true, TradeID: input.TradeID, ParticipantPubkeys: thread.Participants, RecipientPubkeys: thread.Recipients(),
	}
	switch {
	case input.Content == "":
		result.RequiresMessage, result.Message = true, "The conversation with the escrow is ready. Ask the user what to send there."
	case input.DryRun:
		result.Content = input.Content
	default:
		sent, err := service.Send(ctx, thread, input.Content, seconds(input.TimeoutSeconds))
		if err != nil {
			return answer[EscrowInvolveResult]{}, err
		}
		result.DryRun, result.SentMessage, thread = false, newSentMessage(sent.Message), sent.Thread
	}
	if operators := caller.registry.EscrowPubkeys(); slices.Contains(operators, account.Pubkey()) {
		result.showRoles(shared.People, account.Pubkey())
	}
	view, warning := newThreadView(thread, people, account.Pubkey(), shownMessages)
	result.ThreadView = view
	return answer[EscrowInvolveResult]{data: result, warnings: warnings(warning)}, nil
}

// showRoles adds the roles to what an operator sees of the trades it is the escrow of.
func (r *EscrowInvolveResult) showRoles(people threads.TradePeople, operator string) {
	if people.Escrow != operator {
		return
	}
	r.Roles = &market.GroupRolesResult{Seller: people.Seller, Buyer: people.Buyer, Escrow: people.Escrow}
	pubkeys := []string{people.Seller, people.Buyer, people.Escrow}
	slices.Sort(pubkeys)
	r.ParticipantPubkeys = slices.Compact(pubkeys)
}

// followedThreads returns the account's conversations once its background work is up
// and its messages are there, or the time for them is over (spec 60 §6.3).
func followedThreads(ctx context.Context, caller caller, account *sessions.Account, timeoutSeconds int) (*threads.Service, error) {
	if err := caller.session.AwaitHydration(ctx); err != nil {
		return nil, err
	}
	services, err := caller.session.Services(ctx)
	if err != nil {
		return nil, err
	}
	if services.Threads == nil || caller.session.Account() != account {
		return nil, fault.New(fault.AuthRequired, "The account signed out while the call began: sign in with hostr.session.connect and call again.").Transient()
	}
	return services.Threads, services.Threads.Await(ctx, seconds(timeoutSeconds))
}

func seconds(count int) time.Duration { return time.Duration(count) * time.Second }
