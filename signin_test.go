package hostrdaemon

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	"github.com/nbd-wtf/go-nostr"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// What the bridge sends.
type (
	emptyInput   struct{}
	connectInput struct {
		Wait           bool `json:"wait"`
		Regenerate     bool `json:"regenerate,omitempty"`
		TimeoutSeconds int  `json:"timeoutSeconds,omitempty"`
	}
	editInput struct {
		About  string `json:"about"`
		DryRun bool   `json:"dryRun"`
	}
	loginParams struct {
		RequestID      string `json:"requestId"`
		Regenerate     bool   `json:"regenerate,omitempty"`
		TimeoutSeconds int    `json:"timeoutSeconds,omitempty"`
		NSec           string `json:"nsec,omitempty"`
	}
	accountParams struct {
		Pubkey string `json:"pubkey"`
	}
	cancelParams struct {
		RequestID string `json:"requestId"`
	}
)

// What it reads.
type (
	signInData struct {
		Authenticated  bool   `json:"authenticated"`
		Pubkey         string `json:"pubkey"`
		CredentialType string `json:"credentialType"`
		Pending        bool   `json:"pending"`
		NostrConnect   string `json:"nostrconnect"`
		QRImage        string `json:"qrImage"`
		QR             string `json:"qr"`
		RequestID      string `json:"requestId"`
	}
	statusData struct {
		ActivePubkey  string          `json:"activePubkey"`
		Authenticated bool            `json:"authenticated"`
		SignerOnline  bool            `json:"signerOnline"`
		Reconnect     *reconnectGuide `json:"reconnect"`
	}
	reconnectGuide struct {
		SessionAction         string   `json:"sessionAction"`
		TokenPubkey           string   `json:"tokenPubkey"`
		AssistantInstructions []string `json:"assistantInstructions"`
		Reason                string   `json:"reason"`
	}
	profileData struct {
		Pubkey   string `json:"pubkey"`
		NPub     string `json:"npub"`
		Exists   bool   `json:"exists"`
		Metadata struct {
			Name  string `json:"name"`
			About string `json:"about"`
		} `json:"metadata"`
	}
)

const (
	bridgeSession = "Zm9vYmFyLWJyaWRnZS1zZXNzaW9uLWlkLTEyMzQ1Njc"
	login         = "login-1"
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func scan(t *testing.T, phone *signerapp.App, uri string) {
	t.Helper()
	if err := phone.Scan(within(t), uri); err != nil {
		t.Fatal(err)
	}
}

// startLogin begins a sign-in in the browser and returns its code.
func (c *child) startLogin(id string, regenerate bool) signInData {
	c.t.Helper()
	started := data[signInData](c.t, c.result(c.ask("startOAuthNostrConnect", loginParams{RequestID: id, Regenerate: regenerate})))
	if !started.Pending || started.RequestID != id || !strings.HasPrefix(started.NostrConnect, "nostrconnect://") ||
		!strings.HasPrefix(started.QRImage, "data:image/png;base64,iVBORw0KGgo") || !strings.ContainsAny(started.QR, "█▀▄") {
		c.t.Fatalf("no code to show: %+v", started)
	}
	return started
}

func (c *child) completeLogin(id string) envelope {
	c.t.Helper()
	return c.result(c.ask("completeOAuthNostrConnect", loginParams{RequestID: id, TimeoutSeconds: 60}))
}

// signIn signs a phone's account in as the browser page does.
func (c *child) signIn(phone *signerapp.App, id string) {
	c.t.Helper()
	scan(c.t, phone, c.startLogin(id, true).NostrConnect)
	done := data[signInData](c.t, c.completeLogin(id))
	if !done.Authenticated || done.Pubkey != phone.PublicKey() || done.CredentialType != "bunker" {
		c.t.Fatalf("signed in as %+v", done)
	}
}

func (c *child) signInWithKey(person sandbox.Person) {
	c.t.Helper()
	done := data[signInData](c.t, c.result(c.ask("completeOAuthNsec", loginParams{RequestID: login, NSec: person.NSec})))
	if !done.Authenticated || done.Pubkey != person.PublicKey || done.CredentialType != "private_key" {
		c.t.Fatalf("signed in as %+v", done)
	}
}

func (c *child) status(pubkey string) statusData {
	c.t.Helper()
	return data[statusData](c.t, c.call(pubkey, "hostr.session.status", emptyInput{}))
}

func (c *child) mustBeSignedIn(pubkey string) {
	c.t.Helper()
	if status := c.status(pubkey); !status.Authenticated || !status.SignerOnline || status.ActivePubkey != pubkey || status.Reconnect != nil {
		c.t.Fatalf("status of a signed-in account: %+v", status)
	}
}

func (c *child) showProfile(person sandbox.Person) {
	c.t.Helper()
	shown := data[profileData](c.t, c.call(person.PublicKey, "hostr.profile.show", emptyInput{}))
	if shown.Pubkey != person.PublicKey || shown.NPub != person.NPub || !shown.Exists || shown.Metadata.Name != person.Name {
		c.t.Errorf("the profile of %s came as %+v", person.Name, shown)
	}
}

func TestThreeAccountsInOneDaemon(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	daemon := h.spawn()
	people := h.market.Hosts[:3]
	// The first two by the tool, the third in the browser, all under way together.
	tool := func(i int, input connectInput) string {
		return daemon.send("callAction", actionParams{Action: "hostr.session.connect", Pubkey: bridgeSession + fmt.Sprint(i), Input: input})
	}
	shown := []string{tool(0, connectInput{}), tool(1, connectInput{}), daemon.send("startOAuthNostrConnect", loginParams{RequestID: login})}
	waits := []string{tool(0, connectInput{Wait: true}), tool(1, connectInput{Wait: true}), ""}
	for i, id := range shown {
		code := data[signInData](t, daemon.result(daemon.answer(id)))
		if !code.Pending || !strings.HasPrefix(code.QRImage, "data:image/png;base64,iVBORw0KGgo") {
			t.Fatalf("no code to show: %+v", code)
		}
		if i == 2 {
			waits[i] = daemon.send("completeOAuthNostrConnect", loginParams{RequestID: login, TimeoutSeconds: 60})
		}
		scan(t, h.phone(people[i]), code.NostrConnect)
	}
	for i, id := range waits {
		done := data[signInData](t, daemon.result(daemon.answer(id)))
		if !done.Authenticated || done.Pubkey != people[i].PublicKey || done.CredentialType != "bunker" {
			t.Errorf("%s is signed in as %+v", people[i].Name, done)
		}
	}
	daemon.askInTurns(people)
	for _, person := range people {
		daemon.mustBeSignedIn(person.PublicKey)
	}
	if status := daemon.status(bridgeSession + "0"); status.Authenticated {
		t.Errorf("the bridge's own session is signed in: %+v", status)
	}
	daemon.end()
	for key := range h.secrets() {
		if strings.Contains(key, bridgeSession) || key == "auth" {
			t.Errorf("the secrets hold %s", key)
		}
	}
}

// askInTurns has several people ask at the same time, and each gets their own answers.
func (c *child) askInTurns(people []sandbox.Person) {
	c.t.Helper()
	asked := make(map[string]sandbox.Person)
	for range 8 {
		for _, person := range people {
			asked[c.send("callAction", actionParams{Action: "hostr.profile.show", Pubkey: person.PublicKey, Input: emptyInput{}})] = person
			asked[c.send("callAction", actionParams{Action: "hostr.profile.edit", Pubkey: person.PublicKey, Input: editInput{About: "x", DryRun: true}})] = person
		}
	}
	for id, person := range asked {
		if got := data[profileData](c.t, c.result(c.answer(id))); got.Pubkey != person.PublicKey || got.Metadata.Name != person.Name {
			c.t.Errorf("%s got %+v", person.Name, got)
		}
	}
}

// TestRestartBetweenSteps ends the daemon after each step of a visit, once by the end
// of its input and once where it stands.
func TestRestartBetweenSteps(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*child){"end of input": (*child).end, "kill": (*child).kill}
	for name, end := range ends {
		for cut := range steps {
			t.Run(fmt.Sprintf("%s after %s", name, steps[cut].name), func(t *testing.T) {
				t.Parallel()
				v := &visit{home: newHome(t)}
				v.guest = v.home.market.Guests[0]
				v.phone = v.home.phone(v.guest)
				v.daemon = v.home.spawn()
				for i, step := range steps {
					step.take(v)
					if i != cut {
						continue
					}
					end(v.daemon)
					v.daemon = v.home.spawn()
					if i < 2 {
						v.startAgain()
					}
				}
			})
		}
	}
}

// visit is one person's way through the daemon.
type visit struct {
	home   *home
	daemon *child
	guest  sandbox.Person
	phone  *signerapp.App
	uri    string
	// completed is set when signing in again has gone further than the step.
	completed bool
}

var steps = []struct {
	name string
	take func(*visit)
}{
	{"start", func(v *visit) { v.uri = v.daemon.startLogin(login, true).NostrConnect }},
	{"scan", func(v *visit) {
		if !v.completed {
			scan(v.home.t, v.phone, v.uri)
		}
	}},
	{"complete", func(v *visit) {
		if !v.completed {
			data[signInData](v.home.t, v.daemon.completeLogin(login))
		}
		v.daemon.mustBeSignedIn(v.guest.PublicKey)
	}},
	{"preview", func(v *visit) {
		v.daemon.mustBeSignedIn(v.guest.PublicKey)
		v.edit(true)
	}},
	{"live edit", func(v *visit) { v.edit(false) }},
	{"logout", func(v *visit) {
		v.daemon.mustBeSignedIn(v.guest.PublicKey)
		if answered := v.daemon.ask("logoutSession", accountParams{v.guest.PublicKey}); answered.Error != nil {
			v.home.t.Fatalf("signing out: %+v", answered.Error)
		}
	}},
	{"the end", func(v *visit) {
		if status := v.daemon.status(v.guest.PublicKey); status.Authenticated {
			v.home.t.Errorf("still signed in: %+v", status)
		}
	}},
}

// startAgain is what the person does whose sign-in the restart has cut off.
func (v *visit) startAgain() {
	v.home.t.Helper()
	if failed := failure(v.home.t, v.daemon.completeLogin(login)); failed.Code != "unknown_oauth_request" {
		v.home.t.Errorf("a sign-in of the daemon before: %+v", failed)
	}
	v.daemon.signIn(v.phone, login)
	v.completed = true
}

func (v *visit) edit(preview bool) {
	v.home.t.Helper()
	const about = "Travels light."
	edited := v.daemon.call(v.guest.PublicKey, "hostr.profile.edit", editInput{About: about, DryRun: preview})
	if done := data[profileData](v.home.t, edited); edited.DryRun != preview || done.Metadata.About != about || done.Metadata.Name != v.guest.Name {
		v.home.t.Errorf("edited (preview %t): %+v", preview, done)
	}
	found, err := v.home.market.Relay.Query(within(v.home.t), nostr.Filter{Kinds: []int{nostr.KindProfileMetadata}, Authors: []string{v.guest.PublicKey}})
	if err != nil || len(found) != 1 || strings.Contains(found[0].Content, about) == preview {
		v.home.t.Errorf("on the relay (preview %t): %v, %v", preview, found, err)
	}
}

// TestFirstProfileBringsTheAccountUp signs somebody in who has no profile: what waits
// for one begins with the first that is published.
func TestFirstProfileBringsTheAccountUp(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	guest := h.market.Guests[4]
	if guest.Profile != nil {
		t.Fatal("the guest has a profile")
	}
	daemon := h.spawn()
	daemon.signIn(h.phone(guest), login)
	if shown := data[profileData](t, daemon.call(guest.PublicKey, "hostr.profile.show", emptyInput{})); shown.Exists {
		t.Errorf("a profile from nowhere: %+v", shown)
	}
	if strings.Contains(daemon.log(), "seed.ready") {
		t.Error("an account without a profile has a seed")
	}
	data[profileData](t, daemon.call(guest.PublicKey, "hostr.profile.edit", editInput{About: "New here."}))
	daemon.untilLogged("seed.ready")
}

// TestRestoreAsksTheSignerForLittle has a person who would have to approve each
// request: a restart asks for the account and one AUTH.
func TestRestoreAsksTheSignerForLittle(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	guest := h.market.Guests[0]
	phone := h.phone(guest)
	first := h.spawn()
	first.signIn(phone, login)
	first.untilLogged("seed.ready")
	first.end()
	before, seedLooks := len(phone.Requests()), closedRequests(h.market, "17389")
	second := h.spawn()
	second.mustBeSignedIn(guest.PublicKey)
	second.untilLogged("seed.ready")
	if _, err := h.market.Relay.WaitFor(within(t), func(sandbox.Counters) bool { return closedRequests(h.market, "17389") > seedLooks }); err != nil {
		t.Fatal(err)
	}
	second.showProfile(guest)
	second.end()
	asked := make(map[string]int)
	for _, request := range phone.Requests()[before:] {
		if !request.Repeat {
			asked[request.Method]++
		}
		if request.Method == "sign_event" && !strings.Contains(request.Params[0], `"kind":22242`) {
			t.Errorf("the restored session had this signed: %s", request.Params[0])
		}
	}
	if asked["get_public_key"] != 1 || asked["sign_event"] > 1 || len(asked) > 2 || len(asked) == 2 && asked["sign_event"] == 0 {
		t.Errorf("the restored session asked the signer for %v", asked)
	}
}

// closedRequests counts the requests with a text in them that the client has closed.
func closedRequests(market *sandbox.Market, text string) (closed int) {
	open := make(map[string]bool)
	for _, received := range market.Relay.Frames() {
		var parts []json.RawMessage
		if json.Unmarshal([]byte(received.Text), &parts) != nil || len(parts) < 2 {
			continue
		}
		id := fmt.Sprint(received.Connection, string(parts[1]))
		switch {
		case received.Label == "REQ" && strings.Contains(received.Text, text):
			open[id] = true
		case received.Label == "CLOSE" && open[id]:
			delete(open, id)
			closed++
		}
	}
	return closed
}

func TestApprovalWhileNobodyWaits(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	daemon := h.spawn()
	guest, host := h.market.Guests[0], h.market.Hosts[0]
	// In the browser: a wait that ends too early, the approval, the next wait.
	uri := daemon.startLogin(login, true).NostrConnect
	early := failure(t, daemon.result(daemon.ask("completeOAuthNostrConnect", loginParams{RequestID: login, TimeoutSeconds: 1})))
	if early.Code != "nostr_connect_timeout" || !early.Retryable {
		t.Errorf("a wait that ended: %+v", early)
	}
	phone := h.phone(guest)
	scan(t, phone, uri)
	daemon.untilLogged("seed.ready") // which follows a sign-in
	if again := daemon.startLogin(login, false); again.NostrConnect != uri {
		t.Error("the same login shows another code")
	}
	if done := data[signInData](t, daemon.completeLogin(login)); done.Pubkey != guest.PublicKey {
		t.Errorf("collected %+v", done)
	}
	if failed := failure(t, daemon.completeLogin(login)); failed.Code != "unknown_oauth_request" {
		t.Errorf("completing twice: %+v", failed)
	}
	// By the tool: nobody ever waited.
	shown := data[signInData](t, daemon.call(bridgeSession, "hostr.session.connect", connectInput{}))
	scan(t, h.phone(host), shown.NostrConnect)
	if done := data[signInData](t, daemon.call(bridgeSession, "hostr.session.connect", connectInput{Wait: true})); done.Pubkey != host.PublicKey {
		t.Errorf("collected %+v", done)
	}
	fresh := data[signInData](t, daemon.call(bridgeSession, "hostr.session.connect", connectInput{}))
	if fresh.Authenticated || fresh.NostrConnect == shown.NostrConnect {
		t.Errorf("after it was collected: %+v", fresh)
	}
}

func TestWaitsTimeoutCancelAndRegenerate(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	daemon := h.spawn()
	guest := h.market.Guests[0]
	shown := data[signInData](t, daemon.call(bridgeSession, "hostr.session.connect", connectInput{}))
	late := failure(t, daemon.call(bridgeSession, "hostr.session.connect", connectInput{Wait: true, TimeoutSeconds: 1}))
	if late.Code != "nostr_connect_timeout" || !late.Retryable {
		t.Errorf("nobody scanned: %+v", late)
	}
	waiting := daemon.send("callAction", actionParams{Action: "hostr.session.connect", Pubkey: bridgeSession, Input: connectInput{Wait: true}})
	staying := daemon.send("callAction", actionParams{Action: "hostr.session.connect", Pubkey: bridgeSession, Input: connectInput{Wait: true}})
	if cancelled := daemon.result(daemon.ask("cancel", cancelParams{waiting})); !cancelled.Cancelled {
		t.Errorf("cancel: %+v", cancelled)
	}
	if ended := daemon.answer(waiting); ended.Error == nil || ended.Error.Code != "request_cancelled" {
		t.Errorf("a cancelled wait ended as %+v", ended)
	}
	scan(t, h.phone(guest), shown.NostrConnect)
	if done := data[signInData](t, daemon.result(daemon.answer(staying))); done.Pubkey != guest.PublicKey {
		t.Errorf("the other waiter got %+v", done)
	}
	// A new code ends the old one, and those who wait for it.
	old := daemon.startLogin(login, true).NostrConnect
	outdated := daemon.send("completeOAuthNostrConnect", loginParams{RequestID: login, TimeoutSeconds: 60})
	fresh := daemon.startLogin(login, true).NostrConnect
	if fresh == old {
		t.Error("regenerate shows the same code")
	}
	host := h.market.Hosts[0]
	phone := h.phone(host)
	_ = phone.Scan(within(t), old) // nobody listens: the relay may say so
	if status := daemon.status(host.PublicKey); status.Authenticated {
		t.Error("the old code has signed somebody in")
	}
	scan(t, phone, fresh)
	// A wait that came in after the new code, for all we know, has waited for that one.
	ended := daemon.result(daemon.answer(outdated))
	if !ended.OK {
		if ended.Errors[0].Code != "unknown_oauth_request" {
			t.Errorf("a wait for the old code: %+v", ended.Errors)
		}
		ended = daemon.completeLogin(login)
	}
	if done := data[signInData](t, ended); done.Pubkey != host.PublicKey {
		t.Errorf("the new code gave %+v", done)
	}
}

func TestSignInWithKey(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	daemon := h.spawn()
	guest := h.market.Guests[0]
	for _, bad := range []string{guest.NSec[:62] + "q", guest.PrivateKey, guest.NPub, "nsec1"} {
		failed := failure(t, daemon.result(daemon.ask("completeOAuthNsec", loginParams{RequestID: login, NSec: bad})))
		if failed.Code != "invalid_nsec" || failed.Path != "nsec" || !failed.Retryable {
			t.Errorf("a bad key: %+v", failed)
		}
	}
	daemon.signInWithKey(guest)
	daemon.mustBeSignedIn(guest.PublicKey)
	daemon.showProfile(guest)
	daemon.kill()
	next := h.spawn()
	next.mustBeSignedIn(guest.PublicKey)
	next.showProfile(guest)
}

func TestSignerAfterRestart(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	guest := h.market.Guests[0]
	phone := h.phone(guest)
	first := h.spawn()
	first.signIn(phone, login)
	first.end()
	asked := phone.Count("get_public_key")
	phone.Behave(signerapp.Behaviour{Silent: true})
	daemon := h.spawn()
	// Both wait for the one attempt.
	asking := daemon.send("callAction", actionParams{Action: "hostr.session.status", Pubkey: guest.PublicKey, Input: emptyInput{}})
	showing := daemon.send("callAction", actionParams{Action: "hostr.profile.show", Pubkey: guest.PublicKey, Input: emptyInput{}})
	status := data[statusData](t, daemon.result(daemon.answer(asking)))
	if !status.Authenticated || status.SignerOnline || status.Reconnect == nil || status.ActivePubkey != guest.PublicKey {
		t.Fatalf("with a silent signer: %+v", status)
	}
	if tries := phone.Count("get_public_key") - asked; tries != 1 {
		t.Errorf("two requests asked the signer %d times", tries)
	}
	failed := failure(t, daemon.result(daemon.answer(showing)))
	var guide reconnectGuide
	if err := json.Unmarshal(failed.Details, &guide); err != nil || failed.Code != "auth_required" || failed.Retryable {
		t.Fatalf("with a silent signer: %+v", failed)
	}
	if guide.SessionAction != "hostr_session_connect" || guide.TokenPubkey != guest.PublicKey || len(guide.AssistantInstructions) == 0 {
		t.Errorf("the way back: %+v", guide)
	}
	// Offline and back, before the next attempt.
	phone.Offline()
	phone.Behave(signerapp.Behaviour{})
	if err := phone.Online(within(t)); err != nil {
		t.Fatal(err)
	}
	daemon.showProfile(guest)
	daemon.mustBeSignedIn(guest.PublicKey)
	phone.Behave(signerapp.Behaviour{Refuse: "Not authorized"})
	refused := failure(t, daemon.call(guest.PublicKey, "hostr.profile.edit", editInput{About: "x"}))
	if err := json.Unmarshal(refused.Details, &guide); err != nil || refused.Code != "auth_required" || !refused.Retryable || guide.Reason != "signer_not_authorized" {
		t.Errorf("a signer that withdrew its permission: %+v %s", refused, refused.Details)
	}
	phone.Behave(signerapp.Behaviour{})
	daemon.showProfile(guest)
}

func TestSignerRequestsReachTheCaller(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	guest := h.market.Guests[0]
	phone := h.phone(guest)
	first := h.spawn()
	first.signIn(phone, login)
	first.untilLogged("seed.ready")
	first.end()
	// The next daemon has its connection authenticated while the edit waits.
	before := len(phone.Requests())
	phone.Behave(signerapp.Behaviour{Methods: []string{"sign_event"}, Hold: true})
	daemon := h.spawn()
	const token = "9f1c2a30-5d2e-4c39-8a60-0d6f5cf1f2aa"
	editing := daemon.send("callAction", actionParams{
		Action: "hostr.profile.edit", Pubkey: guest.PublicKey, Input: editInput{About: "Approved by hand."}, NotificationToken: token,
	})
	var told signerPending
	daemon.until("notification about the profile", func() bool {
		for _, told = range daemon.pendingLocked() {
			if told.EventKind != nil && *told.EventKind == nostr.KindProfileMetadata {
				return true
			}
		}
		return false
	})
	if told.OperationToken != token || told.ActivePubkey != guest.PublicKey || told.SignerMethod != "sign_event" || told.RequestID == "" || told.Message == "" {
		t.Errorf("told: %+v", told)
	}
	if err := phone.WaitFor(within(t), func(requests []signerapp.Request, held int) bool {
		return held > 1 && slices.ContainsFunc(requests[before:], func(r signerapp.Request) bool {
			return r.Method == "sign_event" && strings.Contains(r.Params[0], `"kind":22242`)
		})
	}); err != nil {
		t.Fatal(err)
	}
	phone.Behave(signerapp.Behaviour{})
	phone.Approve()
	data[profileData](t, daemon.result(daemon.answer(editing)))
	seen := make(map[string]bool)
	for _, told := range daemon.pending() {
		if told.EventKind != nil && *told.EventKind == nostr.KindClientAuthentication {
			t.Errorf("told of an AUTH: %+v", told)
		}
		if seen[told.RequestID] {
			t.Errorf("told twice: %+v", told)
		}
		seen[told.RequestID] = true
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	guest, host := h.market.Guests[0], h.market.Hosts[0]
	first := h.spawn()
	first.signInWithKey(guest)
	first.signInWithKey(host)
	first.until("seeds of both", func() bool { return strings.Count(first.stderr.String(), "seed.ready") == 2 })
	first.end()
	h.database(`INSERT INTO operations (pubkey, namespace, id, state, is_terminal, updated_at, data) VALUES (?, 'swap_out', 's1', 'funded', 0, '2026-01-02T03:04:05Z', '{"id":"s1","state":"funded","isTerminal":false,"preimageHex":"aa"}')`, guest.PublicKey)
	daemon := h.spawn()
	refused := daemon.ask("logoutSession", accountParams{guest.PublicKey})
	if refused.Result != nil || refused.Error.Code != "pending_swaps" || !refused.Error.Retryable {
		t.Fatalf("with a swap under way: %+v", refused)
	}
	var details struct {
		Pubkey           string `json:"pubkey"`
		PendingSwapCount int    `json:"pendingSwapCount"`
		PendingSwaps     []struct {
			Namespace string                     `json:"namespace"`
			State     map[string]json.RawMessage `json:"state"`
		} `json:"pendingSwaps"`
	}
	if err := json.Unmarshal(refused.Error.Details, &details); err != nil || details.Pubkey != guest.PublicKey || details.PendingSwapCount != 1 || len(details.PendingSwaps) != 1 {
		t.Fatalf("details: %s, %v", refused.Error.Details, err)
	}
	if shown := details.PendingSwaps[0]; shown.Namespace != "swap_out" || string(shown.State["id"]) != `"s1"` || shown.State["preimageHex"] != nil {
		t.Errorf("the swap is shown as %+v", shown)
	}
	daemon.mustBeSignedIn(guest.PublicKey)
	daemon.end()
	h.database(`DELETE FROM operations`)
	daemon = h.spawn()
	if done := daemon.ask("logoutSession", accountParams{guest.PublicKey}); done.Error != nil {
		t.Fatalf("signing out: %+v", done.Error)
	}
	kept := h.secrets()
	if _, stored := kept["hostr-session/"+guest.PublicKey+"/auth"]; stored {
		t.Error("the sign-in is still stored")
	}
	for _, key := range []string{guest.PublicKey + "/seed", host.PublicKey + "/auth"} {
		if kept["hostr-session/"+key] == "" {
			t.Errorf("%s is gone", key)
		}
	}
	if failed := failure(t, daemon.call(guest.PublicKey, "hostr.profile.show", emptyInput{})); failed.Code != "auth_required" {
		t.Errorf("after signing out: %+v", failed)
	}
	daemon.showProfile(host)
}

// database changes the database while no daemon has it.
func (h *home) database(statement string, args ...any) {
	h.t.Helper()
	database, err := sql.Open("sqlite3", filepath.Join(h.state, "development.sqlite3"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer database.Close()
	if _, err := database.Exec(statement, args...); err != nil {
		h.t.Fatal(err)
	}
}

func TestOneSeedForAllDevices(t *testing.T) {
	t.Parallel()
	for name, signIn := range map[string]func(*child, sandbox.Person, *signerapp.App){
		"private key": func(c *child, person sandbox.Person, _ *signerapp.App) { c.signInWithKey(person) },
		"signer":      func(c *child, _ sandbox.Person, phone *signerapp.App) { c.signIn(phone, login) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			guest := h.market.Guests[0]
			phone := h.phone(guest)
			homes := []*home{h, h.device(), h.device()}
			// The first two at the same time, the third long after.
			var daemons []*child
			for _, home := range homes[:2] {
				daemon := home.spawn()
				signIn(daemon, guest, phone)
				daemons = append(daemons, daemon)
			}
			for _, daemon := range daemons {
				daemon.untilLogged("seed.ready")
				daemon.end()
			}
			third := homes[2].spawn()
			signIn(third, guest, phone)
			third.untilLogged("seed.ready")
			third.end()
			entry := "hostr-session/" + guest.PublicKey + "/seed"
			for _, home := range homes {
				if seed := home.secrets()[entry]; seed == "" || seed != h.secrets()[entry] {
					t.Error("two devices have different seeds, or none")
				}
			}
			found, err := h.market.Relay.Query(within(t), nostr.Filter{Kinds: []int{17389}, Authors: []string{guest.PublicKey}})
			if err != nil || len(found) != 1 {
				t.Errorf("%d backups on the relay, %v", len(found), err)
			}
		})
	}
}

// TestSecretsStayInTheirFile looks for every secret of a visit in all that the
// daemon wrote, with all its logs on.
func TestSecretsStayInTheirFile(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	guest, host := h.market.Guests[0], h.market.Hosts[0]
	phone := h.phone(guest)
	daemon := h.spawn()
	uri := daemon.startLogin(login, true).NostrConnect
	scan(t, phone, uri)
	data[signInData](t, daemon.completeLogin(login))
	daemon.signInWithKey(host)
	failure(t, daemon.result(daemon.ask("completeOAuthNsec", loginParams{RequestID: login, NSec: host.NSec[:62] + "q"})))
	daemon.showProfile(guest)
	data[profileData](t, daemon.call(guest.PublicKey, "hostr.profile.edit", editInput{About: "a"}))
	phone.Behave(signerapp.Behaviour{Refuse: "Not authorized"})
	failure(t, daemon.call(guest.PublicKey, "hostr.profile.edit", editInput{About: "b"}))
	daemon.untilLogged("seed.ready")
	daemon.end()
	_, query, _ := strings.Cut(uri, "&secret=")
	secret, _, _ := strings.Cut(query, "&")
	canaries := []string{guest.NSec, guest.PrivateKey, host.NSec, host.NSec[:62], host.PrivateKey, secret, h.clientKey(guest.PublicKey)}
	for _, person := range []sandbox.Person{guest, host} {
		if stored := h.secrets()["hostr-session/"+person.PublicKey+"/seed"]; stored != "" {
			canaries = append(canaries, stored[len(`["`)+65:len(stored)-len(`"]`)])
		}
	}
	for i, canary := range canaries {
		if len(canary) < 20 {
			t.Fatalf("canary %d has %d characters", i, len(canary))
		}
		if strings.Contains(daemon.log(), canary) {
			t.Errorf("canary %d is in the log", i)
		}
		if canary != secret && strings.Contains(daemon.output(), canary) {
			t.Errorf("canary %d is in an answer", i)
		}
	}
	h.eachFile(func(path string, content string) {
		for i, canary := range canaries {
			if path != h.secretsFile() && strings.Contains(content, canary) {
				t.Errorf("canary %d is in %s", i, filepath.Base(path))
			}
		}
	})
	if info, err := os.Stat(h.secretsFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secrets file: %v, %v", info.Mode(), err)
	}
	if strings.Contains(fmt.Sprint(h.secrets()), secret) {
		t.Error("the secret of the code is stored, which is of no use any more")
	}
}

// clientKey is the private key of an account's connection to its signer.
func (h *home) clientKey(pubkey string) string {
	h.t.Helper()
	var elements []string
	var identity struct {
		BunkerConnection struct {
			PrivateKey string `json:"privateKey"`
		} `json:"bunkerConnection"`
	}
	if err := json.Unmarshal([]byte(h.secrets()["hostr-session/"+pubkey+"/auth"]), &elements); err != nil || len(elements) != 1 {
		h.t.Fatalf("the stored sign-in has %d elements, %v", len(elements), err)
	}
	if err := json.Unmarshal([]byte(elements[0]), &identity); err != nil {
		h.t.Fatal("the stored sign-in is unreadable")
	}
	return identity.BunkerConnection.PrivateKey
}

func (h *home) eachFile(look func(path, content string)) {
	h.t.Helper()
	files := 0
	err := filepath.WalkDir(h.state, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files++
		look(path, string(content))
		return err
	})
	if err != nil || files < 2 {
		h.t.Fatalf("%d files in the state directory, %v", files, err)
	}
}

// TestOldStateDirectory opens what the old daemon has left behind (spec 11 §5 and §6).
func TestOldStateDirectory(t *testing.T) {
	t.Parallel()
	const (
		pubkey  = "39a36013301597daef41fbe593a02cc513d0b55527ec2df1050e2e8ff49c85c2"
		private = "e8f32e723decf4051aefac8e2c93c9c5b214313817cdb01a1494b917c8436b35"
	)
	h := newHome(t)
	if err := os.MkdirAll(filepath.Dir(h.secretsFile()), 0o755); err != nil {
		t.Fatal(err)
	}
	identity := fmt.Sprintf(`{"version":1,"credentialType":"private_key","secret":"%[1]s","publicKey":"%[2]s","maxAccountIndex":-1,"keyPair":{"privateKey":"%[1]s","publicKey":"%[2]s"}}`, private, pubkey)
	auth, err := json.Marshal([]string{identity})
	if err != nil {
		t.Fatal(err)
	}
	const seed = "abababababababababababababababababababababababababababababababab"
	entries, err := json.MarshalIndent(map[string]string{
		"hostr-session/" + pubkey + "/auth": string(auth),
		"hostr-session/" + pubkey + "/seed": `["` + pubkey + ":" + seed + `"]`,
		"something/else":                    "kept",
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.secretsFile(), entries, 0o600); err != nil {
		t.Fatal(err)
	}
	tables, err := os.ReadFile("internal/store/testdata/upstream-2.sql")
	if err != nil {
		t.Fatal(err)
	}
	h.database(string(tables))
	h.database(`UPDATE operations SET pubkey = ?`, pubkey)
	daemon := h.spawn()
	daemon.mustBeSignedIn(pubkey)
	edited := daemon.call(pubkey, "hostr.profile.edit", editInput{About: "Still here."})
	if done := data[profileData](t, edited); done.Pubkey != pubkey || done.Metadata.About != "Still here." {
		t.Errorf("edited: %+v", done)
	}
	if refused := daemon.ask("logoutSession", accountParams{pubkey}); refused.Error == nil || refused.Error.Code != "pending_swaps" {
		t.Errorf("the old daemon's unfinished swap is overlooked: %+v", refused)
	}
	daemon.end()
	kept := h.secrets()
	if !strings.Contains(kept["hostr-session/"+pubkey+"/seed"], seed) || kept["something/else"] != "kept" || !slices.Equal([]string{kept["hostr-session/"+pubkey+"/auth"]}, []string{string(auth)}) {
		t.Error("what the old daemon stored has changed")
	}
}
