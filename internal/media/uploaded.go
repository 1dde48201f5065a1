package media

import (
	"encoding/json"
	"fmt"

	"hostr-daemon/internal/blossom"
)

// Uploaded is a file that a server took.
type Uploaded struct {
	// Descriptor is the server's answer, with what it left out filled in.
	Descriptor blossom.Descriptor
	// Filename is the name the caller gave, or "".
	Filename string
	// Signed is true when the account signed the upload.
	Signed bool
}

// MarshalJSON returns the result of uploadImage. A signed upload has the keys of
// spec 20 §11.1; an unsigned one has all keys of the server's answer (§11.2), but
// none that would claim a signature. filename is added where one was given. An
// unknown type is null.
func (u Uploaded) MarshalJSON() ([]byte, error) {
	if u.Signed {
		return json.Marshal(u.signedResult())
	}
	answer, err := json.Marshal(u.Descriptor)
	if err != nil {
		return nil, fmt.Errorf("writing the server's answer: %w", err)
	}
	var result map[string]json.RawMessage
	if err := json.Unmarshal(answer, &result); err != nil {
		return nil, fmt.Errorf("reading the server's answer again: %w", err)
	}
	delete(result, "auth")
	if u.Filename != "" {
		if result["filename"], err = json.Marshal(u.Filename); err != nil {
			return nil, fmt.Errorf("writing the filename: %w", err)
		}
	}
	return json.Marshal(result)
}

type signedResult struct {
	URL       string  `json:"url"`
	SHA256    string  `json:"sha256"`
	Size      int64   `json:"size"`
	Type      *string `json:"type"`
	ServerURL string  `json:"serverUrl"`
	Auth      string  `json:"auth"`
	Filename  string  `json:"filename,omitempty"`
}

func (u Uploaded) signedResult() signedResult {
	result := signedResult{
		URL:       u.Descriptor.URL,
		SHA256:    u.Descriptor.SHA256,
		Size:      u.Descriptor.Size,
		ServerURL: u.Descriptor.ServerURL,
		Auth:      "session",
		Filename:  u.Filename,
	}
	if u.Descriptor.Type != "" {
		result.Type = &u.Descriptor.Type
	}
	return result
}
