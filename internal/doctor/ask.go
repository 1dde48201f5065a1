package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hostr-daemon/internal/environment"
	"hostr-daemon/internal/redact"
)

// maxAnswer is more than any answer the doctor asks for, in bytes.
const maxAnswer = 1 << 20

// asker puts one HTTP question at a time.
type asker struct{ client *http.Client }

// emptyBlob is the SHA-256 of no bytes at all, which every server may be asked for.
const emptyBlob = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// blossom asks for a blob (BUD-01). A server need not have it, nor show it to
// everybody, but it must be able to say so.
func (a asker) blossom(ctx context.Context, server string) error {
	target, err := url.JoinPath(server, emptyBlob)
	if err != nil {
		return errAddress
	}
	status, _, err := a.ask(ctx, http.MethodGet, target, nil)
	if err == nil && status >= http.StatusInternalServerError {
		err = statusError(status)
	}
	return err
}

// geocode asks for a place as the daemon does.
func (a asker) geocode(ctx context.Context, base string) error {
	target, err := url.Parse(base)
	if err != nil {
		return errAddress
	}
	query := target.Query()
	query.Set("q", "Lisbon")
	query.Set("format", "json")
	query.Set("limit", "1")
	target.RawQuery = query.Encode()
	var places []struct {
		DisplayName string `json:"display_name"`
	}
	if err := a.askJSON(ctx, http.MethodGet, target.String(), nil, &places); err != nil {
		return err
	}
	if len(places) == 0 {
		return errors.New("it does not know Lisbon: is the address right?")
	}
	return nil
}

// chainID asks a chain who it is: on another one payments would be lost.
func (a asker) chainID(ctx context.Context, endpoint environment.Endpoint, wanted int64) (string, error) {
	const question = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`
	var answer struct {
		Result string `json:"result"`
		Error  *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := a.askJSON(ctx, http.MethodPost, endpoint.Reveal(), strings.NewReader(question), &answer); err != nil {
		return "", err
	}
	if answer.Error != nil {
		return "", errors.New("it refuses: " + withoutSecrets(answer.Error.Message))
	}
	digits, hexadecimal := strings.CutPrefix(answer.Result, "0x")
	id, err := strconv.ParseInt(digits, 16, 64)
	if err != nil || !hexadecimal {
		return "", errors.New("its answer names no chain id")
	}
	if id != wanted {
		return "", fmt.Errorf("it serves chain %d, not %d: mend evmConfig in the override file", id, wanted)
	}
	return fmt.Sprintf("chain %d", id), nil
}

// swapPairs asks a provider of the Boltz API what it swaps.
func (a asker) swapPairs(ctx context.Context, api environment.Endpoint) (string, error) {
	var pairs map[string]json.RawMessage
	if err := a.askJSON(ctx, http.MethodGet, api.Reveal()+"/swap/reverse", nil, &pairs); err != nil {
		return "", err
	}
	if len(pairs) == 0 {
		return "", errors.New("it swaps nothing")
	}
	return fmt.Sprintf("currencies: %d", len(pairs)), nil
}

func (a asker) askJSON(ctx context.Context, method, target string, body io.Reader, into any) error {
	status, answer, err := a.ask(ctx, method, target, body)
	if err != nil {
		return err
	}
	if status/100 != 2 {
		return statusError(status)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return errors.New("its answer is not what such a server sends: is the address right?")
	}
	return nil
}

// errAddress stands for the parser's own words, which repeat the address.
var errAddress = errors.New("its address cannot be read")

func statusError(status int) error { return fmt.Errorf("it answers with HTTP %d", status) }

func (a asker) ask(ctx context.Context, method, target string, body io.Reader) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return 0, nil, errAddress
	}
	request.Header.Set("User-Agent", "hostr-daemon doctor (+https://hostr.network)")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := a.client.Do(request)
	if err != nil {
		return 0, nil, withoutAddress(ctx, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, nil, withoutAddress(ctx, err)
	}
	return response.StatusCode, answer, nil
}

// withoutAddress drops the address that net/http puts into its errors.
func withoutAddress(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if addressed := (*url.Error)(nil); errors.As(err, &addressed) {
		err = addressed.Err
	}
	return errors.New(withoutSecrets(err.Error()))
}

// withoutSecrets makes words from outside fit to be shown.
func withoutSecrets(text string) string {
	const longest = 200
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return redact.Text(text)
}
