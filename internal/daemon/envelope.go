package daemon

import (
	"fmt"

	"hostr-daemon/internal/fault"
	"hostr-daemon/internal/redact"
)

// envelope is the result object of spec 10 §3.3, its keys in this order.
type envelope struct {
	OK          bool
	Command     string
	Environment string
	DryRun      bool
	TraceID     []byte         // left out when empty
	Data        []byte         // JSON object; left out when empty
	Warnings    []*fault.Error // left out when empty
	Errors      []*fault.Error // left out when empty
}

func (e *envelope) append(dst []byte) ([]byte, error) {
	dst = append(dst, `{"ok":`...)
	dst = appendBool(dst, e.OK)
	dst = appendString(append(dst, `,"command":`...), e.Command)
	dst = appendString(append(dst, `,"environment":`...), e.Environment)
	dst = appendBool(append(dst, `,"dryRun":`...), e.DryRun)
	if len(e.TraceID) > 0 {
		dst = appendText(append(dst, `,"traceId":`...), e.TraceID)
	}
	if len(e.Data) > 0 {
		dst = append(append(dst, `,"data":`...), e.Data...)
	}
	var err error
	if dst, err = appendIssues(dst, `,"warnings":`, e.Warnings); err != nil {
		return nil, err
	}
	if dst, err = appendIssues(dst, `,"errors":`, e.Errors); err != nil {
		return nil, err
	}
	return append(dst, '}'), nil
}

func appendIssues(dst []byte, key string, issues []*fault.Error) ([]byte, error) {
	if len(issues) == 0 {
		return dst, nil
	}
	dst = append(dst, key...)
	separator := byte('[')
	for _, issue := range issues {
		dst = append(dst, separator)
		separator = ','
		var err error
		if dst, err = appendIssue(dst, issue); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// withoutSecrets returns the issue with its sentences redacted: an error may quote
// what it was given.
func withoutSecrets(issue *fault.Error) *fault.Error {
	message, hint := redact.Text(issue.Message), redact.Text(issue.Hint)
	if message == issue.Message && hint == issue.Hint {
		return issue
	}
	redacted := *issue
	redacted.Message, redacted.Hint = message, hint
	return &redacted
}

// appendIssue appends the error object of spec 10 §2.2. Its sentences must be free
// of secrets.
func appendIssue(dst []byte, issue *fault.Error) ([]byte, error) {
	dst = appendString(append(dst, `{"code":`...), string(issue.Code))
	dst = appendString(append(dst, `,"message":`...), issue.Message)
	if issue.Path != "" {
		dst = appendString(append(dst, `,"path":`...), issue.Path)
	}
	if issue.Hint != "" {
		dst = appendString(append(dst, `,"hint":`...), issue.Hint)
	}
	dst = appendBool(append(dst, `,"retryable":`...), issue.Retryable)
	if issue.Details != nil {
		details, err := encode(issue.Details)
		if err != nil {
			return nil, fmt.Errorf("the details of %s: %w", issue.Code, err)
		}
		dst = append(append(dst, `,"details":`...), details...)
	}
	return append(dst, '}'), nil
}
