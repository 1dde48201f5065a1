package blossom

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"hostr-daemon/internal/trace"
)

// put uploads the blob to one server; an empty authorization means unsigned.
func (c *Client) put(ctx context.Context, server server, blob Blob, authorization string) (Descriptor, *refusal) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := c.newRequest(ctx, server.upload, blob.bytes, authorization)
	if err != nil {
		return Descriptor{}, &refusal{err: reason(err)}
	}
	if authorization == "" {
		setUnsignedHeaders(request.Header, blob)
	} else if blob.mime != "" {
		request.Header.Set("Content-Type", blob.mime)
	}
	answer, refused := c.do(request)
	if refused != nil {
		return Descriptor{}, refused
	}
	descriptor, err := parseDescriptor(answer, blob, authorization != "")
	if err != nil {
		return Descriptor{}, &refusal{err: err.Error()}
	}
	return descriptor, nil
}

func setUnsignedHeaders(header http.Header, blob Blob) {
	header.Set("Content-Type", cmp.Or(blob.mime, "application/octet-stream"))
	header.Set("X-Sha-256", blob.hash)
	if blob.filename != "" {
		header.Set("X-Filename", percentEncoded(blob.filename))
	}
}

// percentEncoded returns the text with every byte that a header cannot carry
// percent-encoded: what is not ASCII, and control characters.
func percentEncoded(text string) string {
	var encoded strings.Builder
	for _, b := range []byte(text) {
		if b < ' ' || b > '~' {
			fmt.Fprintf(&encoded, "%%%02X", b)
		} else {
			encoded.WriteByte(b)
		}
	}
	return encoded.String()
}

func (c *Client) askToMirror(ctx context.Context, server server, blobURL, authorization string) {
	body, err := json.Marshal(struct {
		URL string `json:"url"`
	}{blobURL})
	if err != nil {
		return
	}
	request, err := c.newRequest(ctx, server.mirror, body, authorization)
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/json")
	_, _ = c.do(request) // one server has the blob, which is enough
}

// newRequest returns a PUT whose body is read from the given bytes, not from a copy.
func (c *Client) newRequest(ctx context.Context, target string, body []byte, authorization string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	if id := trace.ID(ctx); id != "" {
		request.Header.Set("X-Trace-Id", percentEncoded(id))
	}
	if c.userAgent != "" {
		request.Header.Set("User-Agent", c.userAgent)
	}
	return request, nil
}

// do sends the request and returns the body of a 2xx answer.
func (c *Client) do(request *http.Request) ([]byte, *refusal) {
	response, err := c.http.Do(request)
	if err != nil {
		return nil, &refusal{err: reason(err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswerBytes+1))
	switch success := response.StatusCode/100 == 2; {
	case !success:
		return nil, refusalOf(response, body)
	case err != nil:
		return nil, &refusal{err: "the answer broke off: " + reason(err)}
	case len(body) > MaxAnswerBytes:
		return nil, &refusal{err: fmt.Sprintf("the answer is larger than %d bytes", MaxAnswerBytes)}
	default:
		return body, nil
	}
}

// reason is the error without the URL that net/http puts in front of it.
func reason(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}
