// Package blossom uploads files to Blossom servers (BUD-01, BUD-02, BUD-04; spec
// 20 §11, 40 §9.4): signed by an account and mirrored to the further servers, or
// unsigned. Servers are tried in order, each for a bounded time.
//
// It knows HTTP, blob descriptors and authorization events. It must never know
// who the account is, where the bytes come from or what a listing is.
package blossom

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// ServerTimeout is how long one server may take for one upload.
	ServerTimeout = 60 * time.Second
	// MirrorTimeout is how long the servers that mirror may take, all at once.
	MirrorTimeout = 20 * time.Second
	// MaxAnswerBytes is how much of an answer is read.
	MaxAnswerBytes = 64 << 10
)

// Config says which servers to use and how to reach them.
type Config struct {
	// Servers are base URLs in order of preference. Blanks are dropped and repeated
	// ones used once. A URL whose path ends in /upload is the endpoint itself.
	Servers []string
	// Transport carries the requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// Now is the clock of authorization events; nil means time.Now.
	Now func() time.Time
	// UserAgent is sent with each request, if it is not empty.
	UserAgent string
}

// Client uploads to the servers of one environment. Safe for concurrent use.
type Client struct {
	servers   []string
	http      *http.Client
	now       func() time.Time
	userAgent string
	timeout   time.Duration // of one server
}

// New returns a client; it touches no network.
func New(config Config) *Client {
	client := &Client{
		http:      &http.Client{Transport: config.Transport, CheckRedirect: keepMethod},
		now:       config.Now,
		userAgent: config.UserAgent,
		timeout:   ServerTimeout,
	}
	if client.now == nil {
		client.now = time.Now
	}
	for _, server := range config.Servers {
		server = strings.TrimSpace(server)
		if server != "" && !slices.Contains(client.servers, server) {
			client.servers = append(client.servers, server)
		}
	}
	return client
}

// Upload has the account sign an authorization for the blob and puts it on the
// first server that takes it; the servers after that one are asked to mirror it,
// and their failure does not matter. ServerURL of the result is the base URL.
//
// A signer's error is returned as it is. If no server takes the blob, the error is
// image_upload_failed with a []Failure as details.
func (c *Client) Upload(ctx context.Context, blob Blob, signer EventSigner) (Descriptor, error) {
	if len(c.servers) == 0 {
		return Descriptor{}, noServers()
	}
	authorization, err := authorize(ctx, blob.hash, c.now(), signer)
	if err != nil {
		return Descriptor{}, err
	}
	taken, err := c.offer(ctx, blob, authorization, signedFailures)
	if err != nil {
		return Descriptor{}, err
	}
	c.mirror(ctx, taken.further, taken.descriptor.URL, authorization)
	taken.descriptor.ServerURL = taken.by.base
	return taken.descriptor, nil
}

// UploadUnsigned puts the blob on the first server that takes it without an
// authorization. ServerURL of the result is the URL of the upload endpoint. If no
// server takes the blob, the error is image_upload_failed with a []UnsignedFailure
// as details.
func (c *Client) UploadUnsigned(ctx context.Context, blob Blob) (Descriptor, error) {
	if len(c.servers) == 0 {
		return Descriptor{}, noServers()
	}
	taken, err := c.offer(ctx, blob, "", unsignedFailures)
	if err != nil {
		return Descriptor{}, err
	}
	taken.descriptor.ServerURL = taken.by.upload
	return taken.descriptor, nil
}

// taken is an upload that a server took.
type taken struct {
	descriptor Descriptor
	by         server
	// further are the servers after that one, as configured.
	further []string
}

// offer puts the blob on the first server that takes it. If none does, the error
// holds the details of all attempts.
func (c *Client) offer(ctx context.Context, blob Blob, authorization string, details func([]attempt) any) (taken, error) {
	var failed []attempt
	for i, configured := range c.servers {
		server, refused := parseServer(configured)
		if refused == nil {
			var descriptor Descriptor
			if descriptor, refused = c.put(ctx, server, blob, authorization); refused == nil {
				return taken{descriptor: descriptor, by: server, further: c.servers[i+1:]}, nil
			}
		}
		if err := context.Cause(ctx); err != nil {
			return taken{}, fmt.Errorf("the upload was given up: %w", err)
		}
		failed = append(failed, attempt{server, refused})
	}
	return taken{}, allFailed(failed, details)
}

// mirror asks the servers to fetch the blob from its URL, all at once.
func (c *Client) mirror(ctx context.Context, servers []string, blobURL, authorization string) {
	if len(servers) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, MirrorTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for _, configured := range servers {
		if server, refusal := parseServer(configured); refusal == nil {
			asked.Go(func() { c.askToMirror(ctx, server, blobURL, authorization) })
		}
	}
	asked.Wait()
}
