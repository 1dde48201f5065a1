package conversation

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nbd-wtf/go-nostr"
	"github.com/rs/zerolog"

	"hostr-daemon/internal/sandbox"
	"hostr-daemon/internal/sandbox/signerapp"
)

// bridgeSession is an opaque id as the bridge gives to each of its own sessions.
const bridgeSession = "c2FuZGJveC1icmlkZ2Utc2Vzc2lvbi1pZC0wMDAwMDE"

// signingIn has a guest sign in with a signer app, change the profile, upload a
// picture and sign out.
func signingIn(m *sandbox.Market) []step {
	visit := &visit{market: m, guest: guestWithProfile(m)}
	return []step{
		{
			"Ask as somebody who is not signed in",
			"What belongs to an account is for whoever signed in with it here. The refusal names the action that signs in.",
			visit.notSignedIn,
		},
		{
			"Sign in with a signer app",
			"A guest's key stays on the phone. The daemon shows a code; the signer app scans it and from then on signs what the " +
				"guest approves (Nostr Connect). Here the sandbox plays the phone, which approves everything.",
			visit.signIn,
		},
		{
			"My profile",
			"The bridge now asks in the name of the account.",
			visit.showProfile,
		},
		{
			"Change my profile",
			"Whatever changes something is previewed first. Only dryRun=false publishes, after the phone has signed.",
			visit.editProfile,
		},
		{
			"Upload a picture",
			"Pictures go to the picture server, in the name of the account that uploads them.",
			visit.upload,
		},
		{
			"Sign out",
			"Signing out removes the account's keys from this machine.",
			visit.signOut,
		},
	}
}

// visit is one guest's stay in the conversation.
type visit struct {
	market *sandbox.Market
	guest  sandbox.Person
	phone  *signerapp.App
}

func guestWithProfile(m *sandbox.Market) sandbox.Person {
	for _, guest := range m.Guests {
		if guest.Profile != nil {
			return guest
		}
	}
	return m.Guests[0]
}

// connected is the data of hostr.session.connect (spec 20 §5.2).
type connected struct {
	Authenticated  bool   `json:"authenticated"`
	Pubkey         string `json:"pubkey"`
	CredentialType string `json:"credentialType"`
	Pending        bool   `json:"pending"`
	NostrConnect   string `json:"nostrconnect"`
	QRImage        string `json:"qrImage"`
}

// notSignedIn asks in the guest's name while the guest is not signed in.
func (v *visit) notSignedIn(ctx context.Context, t *talk) {
	request, ok := t.send("callAction", ActionParams{Action: "hostr.profile.show", Pubkey: v.guest.PublicKey})
	if !ok {
		return
	}
	if envelope, ok := t.envelope(ctx, request, "hostr.profile.show"); ok {
		t.refused(envelope, "auth_required", "")
	}
}

func (v *visit) signIn(ctx context.Context, t *talk) { v.phone = t.signInByPhone(ctx, v.guest) }

// signInByPhone signs a person in with a signer app, nil when that goes wrong. The app
// goes on until it is closed.
func (t *talk) signInByPhone(ctx context.Context, person sandbox.Person) *signerapp.App {
	phone, err := signerapp.New(signerapp.Options{PrivateKey: person.PrivateKey, Logger: zerolog.Nop()})
	if err != nil {
		t.bad("the phone cannot be set up: %v", err)
		return nil
	}
	if !t.scan(ctx, phone, person) {
		phone.Close()
		return nil
	}
	return phone
}

func (t *talk) scan(ctx context.Context, phone *signerapp.App, person sandbox.Person) bool {
	var shown, done connected
	if !t.succeedAs(ctx, bridgeSession, "hostr.session.connect", map[string]any{"wait": false}, &shown) {
		return false
	}
	t.check(shown.Pending && strings.HasPrefix(shown.NostrConnect, "nostrconnect://") && strings.HasPrefix(shown.QRImage, "data:image/png;base64,"),
		"a code to scan, as a link and as a picture", fmt.Sprintf("pending is %t", shown.Pending))
	scanning, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := phone.Scan(scanning, shown.NostrConnect); err != nil {
		t.bad("the phone could not answer: %v", err)
		return false
	}
	if !t.succeedAs(ctx, bridgeSession, "hostr.session.connect", map[string]any{"wait": true}, &done) {
		return false
	}
	right := done.Authenticated && done.Pubkey == person.PublicKey && done.CredentialType == "bunker"
	t.check(right, fmt.Sprintf("the %s is signed in, by the phone's key", person.Role), fmt.Sprintf("%+v", done))
	return right
}

// signInByKey signs a person in with the private key, which is not shown.
func (t *talk) signInByKey(ctx context.Context, person sandbox.Person) bool {
	t.quiet = true
	frame, ok := t.call(ctx, "completeOAuthNsec", map[string]string{"requestId": "sandbox-sign-in", "nsec": person.NSec})
	t.quiet = false
	var envelope Envelope
	var done connected
	if !ok || !t.read(frame, &envelope) || !t.data(envelope, &done) {
		return false
	}
	right := done.Authenticated && done.Pubkey == person.PublicKey && done.CredentialType == "private_key"
	t.check(right, fmt.Sprintf("the %s is signed in, by the key", person.Role), fmt.Sprintf("%+v", done))
	return right
}

// signOut signs a person out.
func (t *talk) signOut(ctx context.Context, person sandbox.Person) {
	frame, ok := t.call(ctx, "logoutSession", map[string]string{"pubkey": person.PublicKey})
	var envelope Envelope
	if !ok || !t.read(frame, &envelope) {
		return
	}
	var out struct{ SignedOut bool }
	t.check(t.data(envelope, &out) && out.SignedOut, fmt.Sprintf("the %s is signed out", person.Role), issues(envelope.Errors))
}

func (v *visit) showProfile(ctx context.Context, t *talk) {
	var profile Profile
	if !t.succeedAs(ctx, v.guest.PublicKey, "hostr.profile.show", map[string]any{}, &profile) {
		return
	}
	t.check(profile.Exists == (v.guest.Profile != nil) && profile.Pubkey == v.guest.PublicKey && profile.NPub == v.guest.NPub,
		"it is the guest's own", fmt.Sprintf("%+v", profile))
}

// edited is the data of hostr.profile.edit (spec 20 §10.5).
type edited struct {
	DryRun         bool           `json:"dryRun"`
	Metadata       map[string]any `json:"metadata"`
	RelayResponses []struct {
		RelayURL            string `json:"relayUrl"`
		BroadcastSuccessful bool   `json:"broadcastSuccessful"`
	} `json:"relayResponses"`
}

func (v *visit) editProfile(ctx context.Context, t *talk) {
	const about = "Travels light, asks before bringing the dog."
	preview, ok := v.edit(ctx, t, map[string]any{"about": about})
	if !ok {
		return
	}
	t.check(preview.DryRun && preview.Metadata["about"] == about && v.published(ctx, t)["about"] != about,
		"the preview shows the change, and nothing is published", fmt.Sprintf("%+v", preview))
	live, ok := v.edit(ctx, t, map[string]any{"about": about, "dryRun": false})
	if !ok {
		return
	}
	accepted := len(live.RelayResponses) > 0 && live.RelayResponses[0].BroadcastSuccessful
	published := v.published(ctx, t)
	t.check(!live.DryRun && accepted && published["about"] == about, "the relay has the new profile", fmt.Sprintf("%+v", live))
	for key, value := range v.contentBefore(t) {
		if key != "about" && fmt.Sprint(published[key]) != fmt.Sprint(value) {
			t.bad("the profile's %s was %v and is now %v", key, value, published[key])
			return
		}
	}
	t.good("all that was not changed is still there")
}

func (v *visit) edit(ctx context.Context, t *talk, input map[string]any) (edited, bool) {
	request, ok := t.send("callAction", ActionParams{Action: "hostr.profile.edit", Pubkey: v.guest.PublicKey, Input: input})
	if !ok {
		return edited{}, false
	}
	frame, ok := t.await(ctx, request)
	var envelope Envelope
	if !ok || !t.read(frame, &envelope) {
		return edited{}, false
	}
	var data edited
	return data, t.data(envelope, &data)
}

// published is the newest profile on the relay.
func (v *visit) published(ctx context.Context, t *talk) map[string]any {
	events, err := v.market.Relay.Query(ctx, nostr.Filter{Kinds: []int{nostr.KindProfileMetadata}, Authors: []string{v.guest.PublicKey}})
	if err != nil || len(events) == 0 {
		t.bad("the relay has no profile of the guest: %v", err)
		return nil
	}
	return content(t, events[0])
}

func (v *visit) contentBefore(t *talk) map[string]any {
	if v.guest.Profile == nil {
		return nil
	}
	return content(t, *v.guest.Profile)
}

func content(t *talk, event nostr.Event) map[string]any {
	var fields map[string]any
	if err := json.Unmarshal([]byte(event.Content), &fields); err != nil {
		t.bad("the profile is unreadable: %v", err)
	}
	return fields
}

// smallestPicture is a PNG of one pixel.
const smallestPicture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="

func (v *visit) upload(ctx context.Context, t *talk) {
	frame, ok := t.call(ctx, "uploadImage", map[string]string{"pubkey": v.guest.PublicKey, "base64": smallestPicture, "mime": "image/png"})
	var envelope Envelope
	if !ok || !t.read(frame, &envelope) {
		return
	}
	var stored struct {
		URL, SHA256, Auth string
	}
	if !t.data(envelope, &stored) {
		return
	}
	bytes, err := base64.StdEncoding.DecodeString(smallestPicture)
	if err != nil {
		t.bad("%v", err)
		return
	}
	blob, _, found := v.market.Blossom.Get(stored.SHA256)
	t.check(found && string(blob) == string(bytes) && stored.Auth == "session", "the picture server has it, from the account", fmt.Sprintf("%+v", stored))
}

func (v *visit) signOut(ctx context.Context, t *talk) {
	if v.phone != nil {
		defer v.phone.Close()
	}
	t.signOut(ctx, v.guest)
	v.notSignedIn(ctx, t)
}

// succeedAs is succeed in the name of an account or session.
func (t *talk) succeedAs(ctx context.Context, pubkey, id string, input, data any) bool {
	request, ok := t.send("callAction", ActionParams{Action: id, Pubkey: pubkey, Input: input})
	if !ok {
		return false
	}
	envelope, ok := t.envelope(ctx, request, id)
	return ok && t.data(envelope, data)
}
