package signer

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"

	"hostr-daemon/internal/fault"
)

// TestInvitationURI is the vector of spec 20 §4.1.
func TestInvitationURI(t *testing.T) {
	t.Parallel()
	drawn, err := hex.DecodeString("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1ff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
	if err != nil {
		t.Fatal(err)
	}
	app := App{
		Name: "Hostr (Staging)", URL: "https://ai.staging.hostr.network",
		Image: "https://hostr.network/assets/assets/images/logo/generated/logo_base_1024.png",
	}
	invitation, err := NewInvitation([]string{"wss://relay.staging.hostr.network"}, app, bytes.NewReader(drawn))
	if err != nil {
		t.Fatal(err)
	}
	const want = "nostrconnect://6d6caac248af96f6afa7f904f550253a0f3ef3f5aa2fe6838a95b216691468e2?relay=wss%3A%2F%2Frelay.staging.hostr.network&secret=8PHy8_T19vf4-fr7_P3-_w==&perms=sign_event,nip44_encrypt,nip44_decrypt,nip04_encrypt,nip04_decrypt&name=Hostr%20(Staging)&url=https%3A%2F%2Fai.staging.hostr.network&image=https%3A%2F%2Fhostr.network%2Fassets%2Fassets%2Fimages%2Flogo%2Fgenerated%2Flogo_base_1024.png"
	if got := invitation.URI(); got != want {
		t.Errorf("the URI is\n%s, want\n%s", got, want)
	}
}

func TestInvitation(t *testing.T) {
	t.Parallel()
	first, err := NewInvitation([]string{"wss://a.example/", "no relay", "ws://b.example:7777", "wss://A.example"}, App{Name: "é + ü"}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if uri := first.URI(); !strings.Contains(uri, "?relay=wss%3A%2F%2Fa.example&relay=ws%3A%2F%2Fb.example%3A7777&secret=") ||
		!strings.HasSuffix(uri, "&name=%C3%A9%20%2B%20%C3%BC") {
		t.Errorf("the URI is %s", uri)
	}
	second, err := NewInvitation(first.Relays(), App{}, rand.Reader)
	if err != nil || second.ClientPubkey() == first.ClientPubkey() || *second.secret == *first.secret {
		t.Errorf("two invitations are alike, or: %v", err)
	}
	if _, err := NewInvitation([]string{"https://a.example"}, App{}, rand.Reader); !fault.Is(err, fault.RelayRequired) {
		t.Errorf("without a relay: %v", err)
	}
	for _, length := range []int{0, 31, 47} {
		if _, err := NewInvitation(first.Relays(), App{}, bytes.NewReader(bytes.Repeat([]byte{1}, length))); err == nil {
			t.Errorf("an invitation out of %d bytes", length)
		}
	}
}

func TestEncodeURIComponent(t *testing.T) {
	t.Parallel()
	all := ""
	for b := range 128 {
		all += string(rune(b))
	}
	const want = "%00%01%02%03%04%05%06%07%08%09%0A%0B%0C%0D%0E%0F%10%11%12%13%14%15%16%17%18%19%1A%1B%1C%1D%1E%1F" +
		"%20!%22%23%24%25%26'()*%2B%2C-.%2F0123456789%3A%3B%3C%3D%3E%3F%40ABCDEFGHIJKLMNOPQRSTUVWXYZ%5B%5C%5D%5E_%60abcdefghijklmnopqrstuvwxyz%7B%7C%7D~%7F"
	if got := encodeURIComponent(all); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
