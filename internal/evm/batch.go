package evm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// maxBatch is how many requests go into one POST; public nodes take at least so many.
const maxBatch = 50

// batchMethod names a batch in errors and logs.
const batchMethod = "batch"

// rpcRequest is one request of a batch.
type rpcRequest struct {
	method string
	params []any
}

// batch sends requests in as few POSTs as may be and returns their results in order.
// An item without a result fails the whole: what it would have said is not known. The
// whole is then tried again as call does.
func (c *Client) batch(ctx context.Context, requests []rpcRequest) ([]json.RawMessage, error) {
	var results []json.RawMessage
	for len(requests) > 0 {
		part := requests[:min(len(requests), maxBatch)]
		requests = requests[len(part):]
		answered, err := c.batchPart(ctx, part)
		if err != nil {
			return nil, err
		}
		results = append(results, answered...)
	}
	return results, nil
}

func (c *Client) batchPart(ctx context.Context, requests []rpcRequest) ([]json.RawMessage, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	attempts := max(minAttempts, len(c.nodes))
	for attempt := 1; ; attempt++ {
		node := c.first()
		results, err := c.askBatch(ctx, node, requests)
		if err == nil {
			return results, nil
		}
		if c.lifetime.Err() != nil {
			return nil, c.closed(batchMethod)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var wrong *WrongChainError
		if attempt == attempts || errors.As(err, &wrong) && len(c.nodes) == 1 {
			return nil, &Failure{c.chainID, batchMethod, node.host, isTransient(err), err}
		}
		c.turnFrom(node)
		if err := c.pause(ctx, time.Duration(attempt)*retryPause); err != nil {
			return nil, err
		}
	}
}

// askBatch makes one attempt at one node.
func (c *Client) askBatch(ctx context.Context, node *node, requests []rpcRequest) ([]json.RawMessage, error) {
	if !node.checked.Load() {
		if _, err := c.checkChain(ctx, node); err != nil {
			return nil, err
		}
	}
	envelopes := make([]envelope, len(requests))
	for i, request := range requests {
		envelopes[i] = envelope{"2.0", uint64(i), request.method, request.params}
	}
	body, err := json.Marshal(envelopes)
	if err != nil {
		return nil, fmt.Errorf("writing the batch: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, c.limits.attempt)
	defer cancel()
	started := time.Now()
	status, answer, err := c.post(limited, node, body)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = noAnswerError{fmt.Errorf("no answer within %s", c.limits.attempt)}
	}
	c.log.Debug().Int64("chainId", c.chainID).Str("host", node.host).Str("method", batchMethod).Int("requests", len(requests)).
		Int("status", status).Dur("elapsed", time.Since(started)).Err(err).Msg("rpc.request")
	if err != nil {
		return nil, err
	}
	return decodeBatch(node, requests, status, answer)
}

// decodeBatch returns the results in the order of the requests: nodes answer in any. A
// node that refuses the whole sends one error, and one that was asked a single thing
// may answer without a list.
func decodeBatch(node *node, requests []rpcRequest, status int, body []byte) ([]json.RawMessage, error) {
	var items []json.RawMessage
	if json.Unmarshal(body, &items) != nil {
		if len(requests) > 1 {
			return nil, wholeRefused(node, status, body)
		}
		items = []json.RawMessage{body}
	}
	if status != http.StatusOK {
		return nil, &HTTPError{Status: status}
	}
	results := make([]json.RawMessage, len(requests))
	for _, item := range items {
		var head struct {
			ID *uint64 `json:"id"`
		}
		if json.Unmarshal(item, &head) != nil || head.ID == nil || *head.ID >= uint64(len(requests)) {
			continue // An error without id leaves its request without a result.
		}
		result, err := decodeResponse(node, *head.ID, status, item)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", requests[*head.ID].method, err)
		}
		results[*head.ID] = result
	}
	for i, result := range results {
		if result == nil || string(result) == "null" {
			return nil, noAnswerError{fmt.Errorf("%s got no result", requests[i].method)}
		}
	}
	return results, nil
}

// wholeRefused returns why a node did not answer a batch with a list.
func wholeRefused(node *node, status int, body []byte) error {
	if _, err := decodeResponse(node, 0, status, body); err != nil {
		return err
	}
	return noAnswerError{errors.New("the answer to a batch is no list")}
}
