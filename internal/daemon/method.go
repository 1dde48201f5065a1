package daemon

import (
	"context"
	"slices"
	"time"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/request"
)

// method is one row of the method table (spec 10 §3). cancel is not in it: it is
// the reader's own.
type method struct {
	name string
	// catalog methods only read the catalog. They run beside the slots, and their
	// result and their failures travel without an envelope.
	catalog bool
	// failsInFrames is set where failures are error frames although the result has an
	// envelope: logoutSession, since the bridge takes every result for a success (spec
	// 10 §3.5).
	failsInFrames bool
	// prepare reads the parameters; it runs on the reader, so it must be quick.
	prepare func(p *parameters, traceID string) (job, *fault.Error)
}

// envelopesFailures reports whether a failure is an ok:false envelope.
func (m *method) envelopesFailures() bool { return !m.catalog && !m.failsInFrames }

// job is what a request asks for, its parameters read.
type job struct {
	// command stands in the envelope.
	command string
	run     func(ctx context.Context, product Product) (request.Outcome, error)
	// action is set for callAction.
	action *request.Action
	// limit is the time it may take, 0 for what the product or the default says.
	limit time.Duration
	// waitsForPerson is set when nothing but a person can end it.
	waitsForPerson bool
}

// The OAuth wait is told in seconds and clamped (spec 10 §3). The bridge waits 15 s
// longer than it asks for, so the margin lets the product tell its own timeout.
const (
	defaultOAuthTimeout = 180
	minOAuthTimeout     = 1
	maxOAuthTimeout     = 600
	oauthTimeoutMargin  = 10 * time.Second
)

var methods = map[string]*method{
	"describe":                  {name: "describe", catalog: true, prepare: describe},
	"visibleActions":            {name: "visibleActions", catalog: true, prepare: visibleActions},
	"callAction":                {name: "callAction", prepare: callAction},
	"uploadImage":               {name: "uploadImage", prepare: uploadImage},
	"logoutSession":             {name: "logoutSession", failsInFrames: true, prepare: logoutSession},
	"startOAuthNostrConnect":    {name: "startOAuthNostrConnect", prepare: startOAuthNostrConnect},
	"completeOAuthNostrConnect": {name: "completeOAuthNostrConnect", prepare: completeOAuthNostrConnect},
	"completeOAuthNsec":         {name: "completeOAuthNsec", prepare: completeOAuthNSec},
}

const (
	methodCancel = "cancel"
	methodHint   = "Send describe to see what there is to call."
)

func describe(*parameters, string) (job, *fault.Error) {
	return job{run: func(ctx context.Context, product Product) (request.Outcome, error) {
		catalog, err := product.Describe(ctx)
		return request.Outcome{Data: catalog}, err
	}}, nil
}

func visibleActions(p *parameters, _ string) (job, *fault.Error) {
	pubkey := p.optional(paramPubkey)
	return job{run: func(ctx context.Context, product Product) (request.Outcome, error) {
		actions, err := product.VisibleActions(ctx, pubkey)
		return request.Outcome{Data: actions}, err
	}}, nil
}

func callAction(p *parameters, traceID string) (job, *fault.Error) {
	id, problem := p.required(paramAction)
	if problem != nil {
		return job{}, problem
	}
	action := request.Action{
		ID:                id,
		Pubkey:            p.optional(paramPubkey),
		Input:             slices.Clip(p.object(paramInput)),
		NotificationToken: p.optional(paramNotificationToken),
		TraceID:           traceID,
	}
	return job{command: id, action: &action, run: func(ctx context.Context, product Product) (request.Outcome, error) {
		return product.CallAction(ctx, action)
	}}, nil
}

func uploadImage(p *parameters, _ string) (job, *fault.Error) {
	base64, problem := p.required(paramBase64)
	if problem != nil {
		return job{}, problem
	}
	upload := request.Upload{
		Base64:   base64,
		Pubkey:   p.optional(paramPubkey),
		MIME:     p.optional(paramMIME),
		Filename: p.optional(paramFilename),
	}
	return job{command: "hostr.upload.image", run: func(ctx context.Context, product Product) (request.Outcome, error) {
		return product.UploadImage(ctx, upload)
	}}, nil
}

func logoutSession(p *parameters, _ string) (job, *fault.Error) {
	pubkey, problem := p.required(paramPubkey)
	if problem != nil {
		return job{}, problem
	}
	return job{command: "hostr.session.logout", run: func(ctx context.Context, product Product) (request.Outcome, error) {
		return product.LogoutSession(ctx, pubkey)
	}}, nil
}

func startOAuthNostrConnect(p *parameters, _ string) (job, *fault.Error) {
	requestID, problem := p.required(paramRequestID)
	if problem != nil {
		return job{}, problem
	}
	start := request.OAuthNostrConnect{RequestID: requestID, Regenerate: p.flag(paramRegenerate)}
	return job{command: "oauth.nostr_connect.start", run: func(ctx context.Context, product Product) (request.Outcome, error) {
		return product.StartOAuthNostrConnect(ctx, start)
	}}, nil
}

func completeOAuthNostrConnect(p *parameters, _ string) (job, *fault.Error) {
	requestID, problem := p.required(paramRequestID)
	if problem != nil {
		return job{}, problem
	}
	seconds, ok := p.integer(paramTimeoutSeconds)
	if !ok {
		seconds = defaultOAuthTimeout
	}
	timeout := time.Duration(min(max(seconds, minOAuthTimeout), maxOAuthTimeout)) * time.Second
	complete := request.OAuthNostrConnect{RequestID: requestID, Timeout: timeout}
	return job{
		command:        "oauth.nostr_connect.complete",
		limit:          timeout + oauthTimeoutMargin,
		waitsForPerson: true,
		run: func(ctx context.Context, product Product) (request.Outcome, error) {
			return product.CompleteOAuthNostrConnect(ctx, complete)
		},
	}, nil
}

func completeOAuthNSec(p *parameters, _ string) (job, *fault.Error) {
	requestID, problem := p.required(paramRequestID)
	if problem != nil {
		return job{}, problem
	}
	nsec, problem := p.required(paramNSec)
	if problem != nil {
		return job{}, problem
	}
	complete := request.OAuthNSec{RequestID: requestID, NSec: nsec}
	return job{command: "oauth.nsec.complete", run: func(ctx context.Context, product Product) (request.Outcome, error) {
		return product.CompleteOAuthNSec(ctx, complete)
	}}, nil
}
