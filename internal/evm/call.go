package evm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const methodChainID = "eth_chainId"

// call sends one request and returns the result as JSON. It tries again where that
// may help, at the next node if there is one; that one then stays the first to ask
// (spec 73 §3). An error is a *Failure, unless ctx has ended.
func (c *Client) call(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	attempts := max(minAttempts, len(c.nodes))
	for attempt := 1; ; attempt++ {
		node := c.first()
		result, err := c.ask(ctx, node, method, params)
		if err == nil {
			return result, nil
		}
		if c.lifetime.Err() != nil {
			return nil, c.closed(method)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if attempt == attempts || !c.worthRetrying(err) {
			return nil, &Failure{c.chainID, method, node.host, isTransient(err), err}
		}
		c.turnFrom(node)
		if err := c.pause(ctx, time.Duration(attempt)*retryPause); err != nil {
			return nil, err
		}
	}
}

// pause returns once d has passed, or earlier with the reason the context ended.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// within returns a context that ends with the client too.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.lifetime, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

func (c *Client) closed(method string) error {
	return &Failure{ChainID: c.chainID, Method: method, Transient: true, Cause: ErrClosed}
}

// worthRetrying tells whether another attempt may succeed. A node of another chain
// will stay one, but the next node may be right.
func (c *Client) worthRetrying(err error) bool {
	var wrong *WrongChainError
	return isTransient(err) || errors.As(err, &wrong) && len(c.nodes) > 1
}

// first returns the node to ask.
func (c *Client) first() *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[c.current]
}

// turnFrom makes the next node the first, or has the only one met on a new
// connection. When another call has turned away already it changes nothing.
func (c *Client) turnFrom(failed *node) {
	c.mu.Lock()
	if c.nodes[c.current] == failed {
		c.current = (c.current + 1) % len(c.nodes)
	}
	c.mu.Unlock()
	c.transport.CloseIdleConnections()
}

// ask makes one attempt at one node, checking its chain first if that was not done.
func (c *Client) ask(ctx context.Context, node *node, method string, params []any) (json.RawMessage, error) {
	if method == methodChainID {
		return c.checkChain(ctx, node)
	}
	if !node.checked.Load() {
		if _, err := c.checkChain(ctx, node); err != nil {
			return nil, err
		}
	}
	return c.request(ctx, node, method, params)
}

func (c *Client) checkChain(ctx context.Context, node *node) (json.RawMessage, error) {
	result, err := c.request(ctx, node, methodChainID, nil)
	if err != nil {
		return nil, err
	}
	got, err := parseQuantity(result)
	if err != nil {
		return nil, err
	}
	if got != uint64(c.chainID) {
		node.checked.Store(false)
		return nil, &WrongChainError{Want: c.chainID, Got: got}
	}
	node.checked.Store(true)
	return result, nil
}

// request makes one HTTP request.
func (c *Client) request(ctx context.Context, node *node, method string, params []any) (json.RawMessage, error) {
	id := c.lastID.Add(1)
	body, err := encodeRequest(id, method, params)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, c.limits.attempt)
	defer cancel()
	started := time.Now()
	status, answer, err := c.post(limited, node, body)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = noAnswerError{fmt.Errorf("no answer within %s", c.limits.attempt)}
	}
	c.log.Debug().Int64("chainId", c.chainID).Str("host", node.host).Str("method", method).Int("status", status).
		Dur("elapsed", time.Since(started)).Err(err).Msg("rpc.request")
	if err != nil {
		return nil, err
	}
	return decodeResponse(node, id, status, answer)
}

func (c *Client) post(ctx context.Context, node *node, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, node.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("the request cannot be made")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, noAnswerError{withoutURL(err)}
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, c.limits.answer+1))
	if err != nil {
		return response.StatusCode, nil, noAnswerError{fmt.Errorf("the answer broke off: %w", err)}
	}
	if int64(len(answer)) > c.limits.answer {
		return response.StatusCode, nil, fmt.Errorf("the answer is larger than %d bytes", c.limits.answer)
	}
	return response.StatusCode, answer, nil
}

// withoutURL drops the URL that net/http puts in front of its errors: it may hold a
// key.
func withoutURL(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// envelope is a JSON-RPC 2.0 request.
type envelope struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

func encodeRequest(id uint64, method string, params []any) ([]byte, error) {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(envelope{"2.0", id, method, params})
	if err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	return body, nil
}

// response is a JSON-RPC 2.0 response.
type response struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    json.Number     `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// decodeResponse returns the result. Some nodes send a JSON-RPC error with another
// status than 200, and some leave the id out of it.
func decodeResponse(node *node, id uint64, status int, body []byte) (json.RawMessage, error) {
	var decoded response
	err := json.Unmarshal(body, &decoded)
	if err == nil && decoded.Error != nil {
		code, _ := strconv.ParseInt(decoded.Error.Code.String(), 10, 64)
		return nil, &RPCError{Code: code, Message: node.shown(decoded.Error.Message), Data: decoded.Error.Data}
	}
	if status != http.StatusOK {
		return nil, &HTTPError{Status: status}
	}
	switch {
	case err != nil:
		return nil, noAnswerError{errors.New("the answer is no JSON-RPC response")}
	case string(decoded.ID) != strconv.FormatUint(id, 10):
		return nil, noAnswerError{errors.New("the answer is one to another request")}
	case decoded.Result == nil:
		return nil, noAnswerError{errors.New("the answer has neither a result nor an error")}
	}
	return decoded.Result, nil
}

// parseQuantity reads the QUANTITY of Ethereum's JSON-RPC, which fits 64 bits here.
// Leading zeros are let pass.
func parseQuantity(result json.RawMessage) (uint64, error) {
	text, ok := parseString(result)
	if ok && len(text) > len("0x") && text[:2] == "0x" {
		if quantity, err := strconv.ParseUint(text[2:], 16, 64); err == nil {
			return quantity, nil
		}
	}
	return 0, errors.New("the result is no hex number")
}

func parseString(result json.RawMessage) (text string, ok bool) {
	var value *string
	if json.Unmarshal(result, &value) != nil || value == nil {
		return "", false
	}
	return *value, true
}
