package giftwrap_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip44"

	"hostr-daemon/internal/giftwrap"
	"hostr-daemon/internal/market"
	"hostr-daemon/internal/signer"
)

type vectors struct {
	Keys      map[string]struct{ Sec, Pub string }
	GiftWraps []struct {
		Name, Recipient string
		Wrap            json.RawMessage
		Expect          struct{ Result, Class, RumorID, Reason string }
	}
	Scenario struct {
		Account      string
		Feed         []string
		AfterHistory struct {
			EventCount int
			Threads    []expectedThread
		}
		ThenLive []struct {
			Feed   string
			Expect struct {
				Anchor          string
				OrderRequestIDs []string
				TextMessageIDs  []string
				Unread          int
			}
		}
	}
	Sizes []struct {
		RumorBytes, SealContentChars, SealJSONBytes int
		WrapContentChars                            *int
	}
}

type expectedThread struct {
	Anchor, Conversation                      string
	CounterpartyPubkeys, ParticipantPubkeys   []string
	EventIDs, OrderRequestIDs, TextMessageIDs []string
	UnreadBeforeLive, UnreadAfterLive         int
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	data, err := os.ReadFile("../market/testdata/messaging-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var read vectors
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.GiftWraps) == 0 || len(read.Scenario.ThenLive) == 0 || len(read.Sizes) == 0 || len(read.Keys) == 0 {
		t.Fatal("vectors are missing")
	}
	return read
}

// account returns the signer of a private key that is given by its last digit.
func account(t testing.TB, digit string) *signer.Local {
	t.Helper()
	local, err := signer.NewLocal(secret(digit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	return local
}

func secret(digit string) string { return strings.Repeat("0", 63) + digit }

// wraps are the vectors' gift wraps by their names.
func (v vectors) wraps(t testing.TB) map[string]*nostr.Event {
	t.Helper()
	wraps := map[string]*nostr.Event{}
	for _, vector := range v.GiftWraps {
		wrap, err := market.DecodeEmbeddedEvent(string(vector.Wrap))
		if err != nil || !market.IsSigned(wrap) {
			t.Fatalf("%s: %v", vector.Name, err)
		}
		wraps[vector.Name] = wrap
	}
	return wraps
}

// encrypt is NIP-44 from the account of one key to that of another.
func encrypt(t testing.TB, from, to, plaintext string) string {
	t.Helper()
	peer, err := nostr.GetPublicKey(secret(to))
	if err != nil {
		t.Fatal(err)
	}
	key, err := nip44.GenerateConversationKey(peer, secret(from))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := nip44.Encrypt(plaintext, key)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

func signed(t testing.TB, digit string, event nostr.Event) *nostr.Event {
	t.Helper()
	if err := event.Sign(secret(digit)); err != nil {
		t.Fatal(err)
	}
	return &event
}

// scripted is an account whose answers are given.
type scripted struct {
	giftwrap.Account
	decrypt func(peer, payload string) (string, error)
	encrypt error
	sign    error
}

var errOffline = errors.New("the signer is offline")

func (s scripted) NIP44Decrypt(ctx context.Context, peer, payload string) (string, error) {
	if s.decrypt != nil {
		return s.decrypt(peer, payload)
	}
	return s.Account.NIP44Decrypt(ctx, peer, payload)
}

func (s scripted) NIP44Encrypt(ctx context.Context, peer, plaintext string) (string, error) {
	if s.encrypt != nil {
		return "", s.encrypt
	}
	return s.Account.NIP44Encrypt(ctx, peer, plaintext)
}

func (s scripted) SignEvent(ctx context.Context, event *nostr.Event) error {
	if s.sign != nil {
		return s.sign
	}
	return s.Account.SignEvent(ctx, event)
}
