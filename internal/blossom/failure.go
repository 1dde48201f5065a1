package blossom

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"hostr-daemon/internal/fault"
)

// Failure is why one server did not take a signed upload (spec 40 §9.4).
type Failure struct {
	ServerURL string `json:"serverUrl"`
	Success   bool   `json:"success"` // false
	Error     string `json:"error"`
}

// UnsignedFailure is why one server did not take an unsigned upload: its answer,
// or what kept it from answering (spec 20 §11.2).
type UnsignedFailure struct {
	ServerURL  string `json:"serverUrl"`
	StatusCode int    `json:"statusCode,omitempty"`
	// Body is the beginning of the answer, at most maxBodyRunes characters.
	Body  *string `json:"body,omitempty"`
	Error string  `json:"error,omitempty"`
}

const (
	maxReasonRunes = 200
	maxBodyRunes   = 1000
)

// refusal is one failed request: a status with its body, or an error.
type refusal struct {
	status int
	reason string // header X-Reason (BUD-01)
	body   string
	err    string
}

func refusalOf(response *http.Response, body []byte) *refusal {
	return &refusal{
		status: response.StatusCode,
		reason: printable(response.Header.Get("X-Reason"), maxReasonRunes),
		body:   printable(string(body), maxBodyRunes),
	}
}

func (r *refusal) text() string {
	switch {
	case r.status == 0:
		return r.err
	case r.reason != "":
		return fmt.Sprintf("HTTP %d: %s", r.status, r.reason)
	default:
		return fmt.Sprintf("HTTP %d", r.status)
	}
}

// attempt is a server that did not take an upload.
type attempt struct {
	server  server
	refusal *refusal
}

func signedFailures(attempts []attempt) any {
	failures := make([]Failure, len(attempts))
	for i, each := range attempts {
		failures[i] = Failure{ServerURL: each.server.base, Error: each.refusal.text()}
	}
	return failures
}

func unsignedFailures(attempts []attempt) any {
	failures := make([]UnsignedFailure, len(attempts))
	for i, each := range attempts {
		failures[i] = UnsignedFailure{ServerURL: each.server.upload, StatusCode: each.refusal.status, Error: each.refusal.err}
		if each.refusal.status != 0 {
			failures[i].Body = &each.refusal.body
		}
	}
	return failures
}

func allFailed(attempts []attempt, details func([]attempt) any) error {
	reasons := make([]string, len(attempts))
	for i, each := range attempts {
		reasons[i] = each.server.base + ": " + each.refusal.text()
	}
	return fault.New(fault.ImageUploadFailed, "No Blossom server took the file. %s.", strings.Join(reasons, "; ")).
		WithHint("Try again later, or with a smaller file if a server says that it is too large.").
		WithDetails(details(attempts))
}

func noServers() error {
	return fault.New(fault.ImageUploadFailed,
		"The file was not uploaded: this environment has no Blossom server. Name one in the override file (bootstrapBlossom).")
}

// printable returns the beginning of a text from outside as one valid line.
func printable(text string, maxRunes int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) <= maxRunes {
		return text
	}
	return string([]rune(text)[:maxRunes]) + "…"
}
