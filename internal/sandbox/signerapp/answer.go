package signerapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip04"
	"github.com/nbd-wtf/go-nostr/nip44"
)

// answerLimit bounds the sending of one answer.
const answerLimit = 20 * time.Second

// notAuthorized is what signers say to a client they do not know.
const notAuthorized = "Not authorized"

// answer is the JSON of a response.
type answer struct {
	ID     string  `json:"id"`
	Result *string `json:"result"`
	Error  *string `json:"error"`
}

func text(value string) *string { return &value }

func (a answer) encode() string {
	encoded, err := json.Marshal(a)
	if err != nil {
		panic(err) // Texts only.
	}
	return string(encoded)
}

// heldRequest waits for a person.
type heldRequest struct {
	request   Request
	behaviour Behaviour
}

// receive takes an event from a relay.
func (a *App) receive(event nostr.Event) {
	if !isGenuine(event) {
		return
	}
	var content struct {
		ID     string   `json:"id"`
		Method string   `json:"method"`
		Params []string `json:"params"`
	}
	opened, err := a.open(event.PubKey, event.Content)
	if err != nil || json.Unmarshal([]byte(opened), &content) != nil {
		a.log.Debug().Str("event", "signerapp.unreadable").Str("eventId", event.ID).Send()
		return
	}
	request := Request{ID: content.ID, EventID: event.ID, Method: content.Method, Params: content.Params, Client: event.PubKey}
	request.Repeat = a.ledger.add(request)
	a.mu.Lock()
	defer a.mu.Unlock()
	behaviour := a.behaviour.take(request.Method)
	switch {
	case a.closed || behaviour.Silent || behaviour.IgnoreRepeats && request.Repeat:
	case behaviour.Hold:
		a.hold(heldRequest{request, behaviour})
	default:
		a.tasks.Go(func() { a.handle(request, behaviour, "") })
	}
}

// isGenuine looks at the lengths first: the C library behind CheckSignature reads past
// its buffers otherwise.
func isGenuine(event nostr.Event) bool {
	isHex := func(text string, length int) bool {
		return len(text) == length && strings.Trim(text, "0123456789abcdef") == ""
	}
	if !isHex(event.ID, 64) || !isHex(event.PubKey, 64) || !isHex(event.Sig, 128) || !event.CheckID() {
		return false
	}
	genuine, err := event.CheckSignature()
	return err == nil && genuine
}

// hold keeps a request for Approve or Deny. The lock is held.
func (a *App) hold(held heldRequest) {
	same := func(other heldRequest) bool { return other.request.ID == held.request.ID }
	if slices.ContainsFunc(a.held, same) {
		return
	}
	if url := held.behaviour.ApprovalURL; url != "" {
		a.tasks.Go(func() { a.sendApprovalURL(held.request, url) })
		held.behaviour.ApprovalURL = ""
	}
	a.held = append(a.held, held)
	a.ledger.hold(len(a.held))
}

// Approve answers the requests that are held, oldest first, and returns how many
// there were.
func (a *App) Approve() int { return a.release("") }

// Deny answers the requests that are held with an error.
func (a *App) Deny(reason string) int { return a.release(reason) }

func (a *App) release(refusal string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	released := a.held
	a.held = nil
	a.ledger.hold(0)
	if a.closed {
		return 0
	}
	for _, held := range released {
		a.tasks.Go(func() { a.handle(held.request, held.behaviour, refusal) })
	}
	return len(released)
}

// handle answers one request.
func (a *App) handle(request Request, behaviour Behaviour, refusal string) {
	if delay := time.Duration(behaviour.DelayMillis) * time.Millisecond; delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-a.ctx.Done():
			return
		}
	}
	if behaviour.ApprovalURL != "" {
		a.sendApprovalURL(request, behaviour.ApprovalURL)
	}
	for _, content := range a.answers(request, behaviour, refusal) {
		a.send(request.Client, content, behaviour.NIP04)
	}
}

func (a *App) sendApprovalURL(request Request, url string) {
	a.send(request.Client, answer{ID: request.ID, Result: text("auth_url"), Error: text(url)}.encode(), false)
}

// answers returns the contents of all events that answer the request.
func (a *App) answers(request Request, behaviour Behaviour, refusal string) []string {
	real := answer{ID: request.ID}
	if refusal == "" {
		refusal = behaviour.Refuse
	}
	result, err := "", errors.New(refusal)
	if refusal == "" {
		result, err = a.perform(request, behaviour.Tamper)
	}
	if err != nil {
		real.Error = text(err.Error())
	} else {
		real.Result = &result
	}
	if behaviour.Result != "" {
		real.Result = &behaviour.Result
	}
	content := real.encode()
	if behaviour.Raw != "" {
		content = strings.ReplaceAll(behaviour.Raw, "$id", request.ID)
	}
	var contents []string
	if behaviour.StrangeFirst {
		contents = []string{"not json", "[]", "null", `{"id":7,"result":"x"}`, answer{ID: "unknown", Result: text("x")}.encode(), ""}
	}
	for range behaviour.Repeats + 1 {
		contents = append(contents, content)
	}
	if behaviour.Contradict {
		contents = append(contents, answer{ID: request.ID, Error: text("changed my mind")}.encode())
	}
	return contents
}

// perform does what the request asks for.
func (a *App) perform(request Request, tamper Tampering) (string, error) {
	params := append(slices.Clone(request.Params), "", "")
	a.mu.Lock()
	if request.Method == "connect" && params[0] == a.transport.public && a.secrets[params[1]] {
		delete(a.secrets, params[1])
		a.clients[request.Client] = true
	}
	authorized := a.clients[request.Client]
	a.mu.Unlock()
	if !authorized {
		return "", errors.New(notAuthorized)
	}
	switch request.Method {
	case "connect":
		return "ack", nil
	case "ping":
		return "pong", nil
	case "get_public_key":
		return a.account.public, nil
	case "sign_event":
		return a.sign(params[0], tamper)
	case "nip44_encrypt", "nip44_decrypt":
		return crypt44(a.account.private, params[0], params[1], request.Method == "nip44_decrypt")
	case "nip04_encrypt", "nip04_decrypt":
		return crypt04(a.account.private, params[0], params[1], request.Method == "nip04_decrypt")
	default:
		return "", fmt.Errorf("unknown method %s", request.Method)
	}
}

// sign takes exactly the four fields of NIP-46 and signs them.
func (a *App) sign(template string, tamper Tampering) (string, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(template), &fields) != nil || len(fields) != 4 {
		return "", errors.New("sign_event takes kind, content, tags and created_at")
	}
	var event nostr.Event
	if err := json.Unmarshal([]byte(template), &event); err != nil {
		return "", errors.New("sign_event takes kind, content, tags and created_at")
	}
	key := a.account.private
	switch tamper {
	case TamperContent:
		event.Content += "!"
	case TamperCreatedAt:
		event.CreatedAt++
	case TamperTags:
		event.Tags = append(event.Tags, nostr.Tag{"client", "signer app"})
	case TamperKind:
		event.Kind++
	case TamperAuthor:
		key = nostr.GeneratePrivateKey()
	}
	if err := event.Sign(key); err != nil {
		return "", errors.New("the event cannot be signed")
	}
	switch tamper {
	case TamperSignature:
		event.Sig = event.Sig[64:] + event.Sig[:64]
	case TamperID:
		event.ID = strings.Repeat("0", 64)
	}
	signed, err := json.Marshal(event)
	return string(signed), err
}

// send encrypts and publishes one content. An empty one goes out as it is.
func (a *App) send(client, content string, old bool) {
	sealed := ""
	if content != "" {
		var err error
		if sealed, err = a.seal(client, content, old); err != nil {
			a.log.Warn().Str("event", "signerapp.unsealed").Err(err).Send()
			return
		}
	}
	ctx, cancel := context.WithTimeout(a.ctx, answerLimit)
	defer cancel()
	if err := a.publish(ctx, client, sealed); err != nil {
		a.log.Debug().Str("event", "signerapp.unsent").Err(err).Send()
	}
}

func (a *App) seal(client, content string, old bool) (string, error) {
	if old {
		return crypt04(a.transport.private, client, content, false)
	}
	return crypt44(a.transport.private, client, content, false)
}

// open reads NIP-44 and what old clients write.
func (a *App) open(client, content string) (string, error) {
	if strings.Contains(content, "?iv=") {
		return crypt04(a.transport.private, client, content, true)
	}
	return crypt44(a.transport.private, client, content, true)
}

func crypt44(private, peer, content string, decrypt bool) (result string, err error) {
	defer recovered(&err)
	key, err := nip44.GenerateConversationKey(peer, private)
	if err != nil {
		return "", errors.New("no conversation key for this peer")
	}
	if decrypt {
		return nip44.Decrypt(content, key)
	}
	return nip44.Encrypt(content, key)
}

func crypt04(private, peer, content string, decrypt bool) (result string, err error) {
	defer recovered(&err)
	key, err := nip04.ComputeSharedSecret(peer, private)
	if err != nil {
		return "", errors.New("no shared secret for this peer")
	}
	if decrypt {
		return nip04.Decrypt(content, key)
	}
	return nip04.Encrypt(content, key)
}

// recovered turns the panics of the libraries on malformed payloads into an error.
func recovered(err *error) {
	if problem := recover(); problem != nil {
		*err = errors.New("malformed payload")
	}
}
