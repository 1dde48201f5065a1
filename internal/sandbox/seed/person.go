package seed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip19"
)

// Role is what a person does on the market.
type Role string

// Roles.
const (
	Host   Role = "host"
	Guest  Role = "guest"
	Escrow Role = "escrow"
)

// Person is an account of the market with its throwaway keys.
type Person struct {
	Role       Role
	Name       string
	PrivateKey string // 64 hex digits
	PublicKey  string // 64 hex digits
	NSec       string
	NPub       string
	// Profile is the signed kind 0 event; nil for the one guest without a profile.
	Profile *nostr.Event
}

// invented first names; more people get a number behind.
var names = []string{
	"Alvea", "Brinu", "Cirell", "Dovan", "Elmira", "Fenno", "Gisla", "Havri", "Ilyet", "Jorun",
	"Kelva", "Lumis", "Marvo", "Nelani", "Oriva", "Pirro", "Quella", "Rasko", "Sevina", "Tavik",
	"Ulmea", "Vestra", "Wenlo", "Xandri", "Yorvik", "Zilla",
}

// newPerson makes person number i of a role. Guest 4 has no profile.
func newPerson(seed int64, role Role, i int) (Person, error) {
	key := digest(seed, "key of "+string(role), i)
	person := Person{Role: role, Name: personName(seed, role, i), PrivateKey: hex.EncodeToString(key[:])}
	var err error
	if person.PublicKey, err = nostr.GetPublicKey(person.PrivateKey); err != nil {
		return person, fmt.Errorf("seed %d gives %s %d no usable key: %w", seed, role, i, err)
	}
	if person.NSec, err = nip19.EncodePrivateKey(person.PrivateKey); err != nil {
		return person, fmt.Errorf("%s %d: %w", role, i, err)
	}
	if person.NPub, err = nip19.EncodePublicKey(person.PublicKey); err != nil {
		return person, fmt.Errorf("%s %d: %w", role, i, err)
	}
	if role == Guest && i == 4 {
		return person, nil
	}
	person.Profile, err = newProfile(seed, person, i)
	return person, err
}

func personName(seed int64, role Role, i int) string {
	first := int(digest(seed, "first name", 0)[0])
	offset := map[Role]int{Host: 0, Guest: 13, Escrow: 25}[role]
	name := names[(first+offset+i)%len(names)]
	if round := i / len(names); round > 0 {
		name = fmt.Sprintf("%s %d", name, round+1)
	}
	return name
}

// profileContent is the JSON of a kind 0 event; fields left out are absent.
type profileContent struct {
	Name        string `json:"name,omitempty"`
	DisplayName string `json:"display_name,omitempty"`
	About       string `json:"about,omitempty"`
	Picture     string `json:"picture,omitempty"`
	Banner      string `json:"banner,omitempty"`
	Website     string `json:"website,omitempty"`
	NIP05       string `json:"nip05,omitempty"`
	LUD16       string `json:"lud16,omitempty"`
	Bot         *bool  `json:"bot,omitempty"`
	Pronouns    string `json:"pronouns,omitempty"` // a field no NIP names
}

// newProfile varies by number which fields are there.
func newProfile(seed int64, person Person, i int) (*nostr.Event, error) {
	handle := strings.ToLower(strings.ReplaceAll(person.Name, " ", ""))
	content := profileContent{Name: person.Name}
	tags := nostr.Tags{}
	if i%5 != 3 { // every fifth has a name and nothing else
		content.About = about(seed, person.Role, i)
		content.LUD16 = handle + "@wallet.example"
		content.Picture = "https://images.example/" + handle + ".png"
	}
	switch i % 5 {
	case 1:
		content.DisplayName = person.Name + " 🌴 of the coast"
		content.NIP05 = handle + "@hostr.example"
		content.Banner = "https://images.example/" + handle + "-banner.jpg"
		tags = append(tags, nostr.Tag{"imeta", "url " + content.Picture, "m image/png", "alt Portrait"})
	case 2:
		no := false
		content.Bot, content.Pronouns = &no, "they/them"
		content.Website = "https://" + handle + ".example"
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("profile of %s: %w", person.Name, err)
	}
	event := &nostr.Event{
		Kind:      nostr.KindProfileMetadata,
		CreatedAt: Epoch - nostr.Timestamp(86400*(1+i)),
		Tags:      tags,
		Content:   string(text),
	}
	if err := event.Sign(person.PrivateKey); err != nil {
		return nil, fmt.Errorf("profile of %s: %w", person.Name, err)
	}
	return event, nil
}

func about(seed int64, role Role, i int) string {
	d := dice(seed, "about "+string(role), i)
	switch role {
	case Escrow:
		return "Keeps the payment of a booking safe until the stay is over. Answers disputes within a day."
	case Guest:
		return pick(d, []string{
			"Works from anywhere with a good chair.", "Travels slowly, with two children and a kite.",
			"Here for the waves, stays for the coffee.", "Collects night trains and quiet rooms.",
		})
	default:
		return pick(d, []string{
			"Rents out what the family built, one room at a time.", "Lives next door and knows every path around.",
			"Two houses, one garden, many oranges.", "Has hosted since the road was paved.",
			"Speaks Spanish, Portuguese and some gestures.",
		})
	}
}

// digest derives 32 bytes from the seed for one purpose.
func digest(seed int64, purpose string, number int) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "hostr sandbox\x00%d\x00%s\x00%d", seed, purpose, number))
}
