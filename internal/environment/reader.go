package environment

import (
	"fmt"
	"strconv"
	"strings"

	"hostr-daemon/internal/fault"
)

// Problem is one thing wrong with a configuration.
type Problem struct {
	// Path is where, for example evmConfig.chains[0].chainId.
	Path string `json:"path"`
	// Reason is missing, type, range, format or enum, as in spec 30 §11.
	Reason string `json:"reason"`
	// Message says what was expected. It never repeats the value.
	Message string `json:"message"`
}

// Problems are the details of the error of a configuration.
type Problems struct {
	// Source is the configuration as the user named it.
	Source string `json:"source"`
	// Problems are in the order of the configuration, the first maxProblems of them.
	Problems []Problem `json:"problems"`
	// Total counts all of them.
	Total int `json:"total"`
}

const (
	reasonMissing = "missing"
	reasonType    = "type"
	reasonRange   = "range"
	reasonFormat  = "format"
	reasonEnum    = "enum"

	maxProblems = 50
)

// reader turns JSON values into typed facts and collects every problem on the way.
// What it returns after a problem is not to be used.
type reader struct {
	source   string
	problems []Problem
	total    int
}

// field is one key an object may have.
type field struct {
	name     string
	required bool
	// nullable takes null as absent.
	nullable bool
	read     func(v value, path string)
}

func (r *reader) fail(path, reason, format string, args ...any) {
	r.total++
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, Problem{Path: path, Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
}

// err returns all problems as one coded error, nil when there are none.
func (r *reader) err() error {
	if r.total == 0 {
		return nil
	}
	first := r.problems[0]
	others := ""
	if r.total == 2 {
		others = " One more problem is in details.problems."
	} else if r.total > 2 {
		others = fmt.Sprintf(" %d more problems are in details.problems.", r.total-1)
	}
	where := ""
	if first.Path != "" {
		where = " at " + first.Path
	}
	return fault.New(fault.UnexpectedError, "The %s is wrong%s: %s.%s", r.source, where, first.Message, others).
		At(first.Path).
		WithDetails(Problems{Source: r.source, Problems: r.problems, Total: r.total})
}

// is reports a wrong type.
func (r *reader) is(v value, wanted kind, path string) bool {
	if v.kind == wanted {
		return true
	}
	r.fail(path, reasonType, "expected %s, not %s", wanted, v.kind)
	return false
}

// object reads the members by their fields; unknown, repeated and missing keys are
// problems.
func (r *reader) object(v value, path string, fields []field) {
	if !r.is(v, kindObject, path) {
		return
	}
	seen := map[string]bool{}
	for _, m := range v.members {
		at := join(path, m.name)
		if seen[m.name] {
			r.fail(at, reasonFormat, "the key is there twice")
			continue
		}
		seen[m.name] = true
		r.member(m, at, fields)
	}
	for _, f := range fields {
		if f.required && !seen[f.name] {
			r.fail(join(path, f.name), reasonMissing, "it is required")
		}
	}
}

func (r *reader) member(m member, path string, fields []field) {
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		if f.name == m.name {
			if !f.nullable || m.value.kind != kindNull {
				f.read(m.value, path)
			}
			return
		}
		known = append(known, f.name)
	}
	r.fail(path, reasonEnum, "unknown key; known here are %s", strings.Join(known, ", "))
}

func (r *reader) list(v value, path string, item func(v value, path string)) {
	if !r.is(v, kindList, path) {
		return
	}
	for i, listed := range v.items {
		item(listed, fmt.Sprintf("%s[%d]", path, i))
	}
}

// text reads a text that is not blank and trims it.
func (r *reader) text(v value, path string) string {
	if !r.is(v, kindText, path) {
		return ""
	}
	trimmed := strings.TrimSpace(v.text)
	if trimmed == "" {
		r.fail(path, reasonMissing, "it must not be blank")
	}
	return trimmed
}

// checked reads a text and reports what check finds wrong with it.
func (r *reader) checked(v value, path string, check func(string) string) string {
	read := r.text(v, path)
	if read != "" {
		if problem := check(read); problem != "" {
			r.fail(path, reasonFormat, "%s", problem)
		}
	}
	return read
}

// texts reads a list of checked texts and drops those whose key was there before.
func (r *reader) texts(v value, path string, check, key func(string) string) []string {
	seen := map[string]bool{}
	read := []string{}
	r.list(v, path, func(v value, path string) {
		item := r.checked(v, path, check)
		if !seen[key(item)] {
			seen[key(item)] = true
			read = append(read, item)
		}
	})
	return read
}

// integer reads a whole number of at least least.
func (r *reader) integer(v value, path string, least int64) int64 {
	if !r.is(v, kindNumber, path) {
		return 0
	}
	read, err := strconv.ParseInt(v.text, 10, 64)
	if err != nil {
		r.fail(path, reasonType, "expected a whole number without fraction or exponent")
	} else if read < least {
		r.fail(path, reasonRange, "expected %d or more", least)
	}
	return read
}

// join appends a key to a path; one that would be misread is quoted.
func join(path, name string) string {
	plain := name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
	if !plain || len(name) > maxShown {
		return path + "[" + strconv.Quote(shorten(name)) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

const maxShown = 64

// shorten cuts a text from outside for a message.
func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return text
}
