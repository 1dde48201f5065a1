package market

import (
	"strings"
	"unicode/utf8"
)

// ProfileSummary is a person as results of actions show them (spec 51 §2.8, spec 60
// §10.1).
type ProfileSummary struct {
	Pubkey string `json:"pubkey"`
	// Name is the first of display name, name and short pubkey that there is.
	Name        string `json:"name"`
	ProfileName string `json:"profileName,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Picture     string `json:"picture,omitempty"`
	// NIP05 is not verified.
	NIP05 string `json:"nip05,omitempty"`
}

// NewProfileSummary returns what is shown of a pubkey whose profile may be nil. Blank
// fields are absent ones.
func NewProfileSummary(pubkey string, profile *Profile) ProfileSummary {
	summary := ProfileSummary{Pubkey: pubkey, Name: shortPubkey(pubkey)}
	if profile == nil {
		return summary
	}
	summary.ProfileName = unlessBlank(profile.Name)
	summary.DisplayName = unlessBlank(profile.DisplayName)
	summary.Picture = unlessBlank(profile.Picture)
	summary.NIP05 = unlessBlank(profile.NIP05)
	for _, name := range []string{summary.ProfileName, summary.DisplayName} {
		if name != "" {
			summary.Name = name
		}
	}
	return summary
}

// shortPubkey returns the beginning of a pubkey, for people.
func shortPubkey(pubkey string) string {
	const whole, beginning = 12, 8
	if utf8.RuneCountInString(pubkey) <= whole {
		return pubkey
	}
	return string([]rune(pubkey)[:beginning]) + "..."
}

func unlessBlank(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}
