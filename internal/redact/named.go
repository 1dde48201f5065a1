package redact

import (
	"bytes"

	"hostr-daemon/internal/jsontext"
)

// connectionSchemes are the URI schemes whose every part may hold a secret: NIP-46
// signer connections and NIP-47 wallet connections.
var connectionSchemes = [][]byte{[]byte("bunker"), []byte("nostrconnect"), []byte("nostr+walletconnect"), []byte("nostrwalletconnect")}

const (
	// maxMediaType is how far the comma of a data URI may be away.
	maxMediaType = 128
	// maxHeader is the longest HTTP header value that is looked at.
	maxHeader = 1024
)

// atColon recognises a URI, an image or the value behind a secret's name.
func atColon(text []byte, colon int) (found secret, ok bool) {
	if colon+1 < len(text) && (text[colon+1] == '/' || text[colon+1] == '\\') {
		if found, ok = uriSecret(text, colon); ok {
			return found, true
		}
	} else if found, ok = dataImage(text, colon); ok {
		return found, true
	}
	return named(text, colon)
}

// uriSecret recognises connection URIs, and user and password in any other URI.
func uriSecret(text []byte, colon int) (secret, bool) {
	slashes := slashesAt(text, colon+1)
	if slashes == 0 {
		return secret{}, false
	}
	start := colon + 1 + slashes
	if isConnectionScheme(text[:colon]) {
		return tokenSecret(text, start, uriEnd(text, start))
	}
	authority := start
	for authority < len(text) && isURIByte(text[authority]) && text[authority] != '/' && text[authority] != '?' && text[authority] != '#' {
		authority++
	}
	at := bytes.LastIndexByte(text[start:authority], '@')
	if at < 0 {
		return secret{}, false
	}
	return tokenSecret(text, start, start+at)
}

// slashesAt returns the length of the two slashes at pos, which JSON may have
// escaped, or 0.
func slashesAt(text []byte, pos int) int {
	switch {
	case pos+2 <= len(text) && text[pos] == '/' && text[pos+1] == '/':
		return 2
	case pos+4 <= len(text) && string(text[pos:pos+4]) == `\/\/`:
		return 4
	default:
		return 0
	}
}

func dataImage(text []byte, colon int) (secret, bool) {
	const word = "data"
	if colon < len(word) || text[colon-1]|0x20 != 'a' || !bytes.EqualFold(text[colon-len(word):colon], []byte(word)) {
		return secret{}, false
	}
	if !hasPrefixFold(text[colon+1:], "image/") && !hasPrefixFold(text[colon+1:], `image\/`) {
		return secret{}, false
	}
	comma := bytes.IndexByte(text[colon:min(len(text), colon+maxMediaType)], ',')
	if comma < 0 {
		return secret{}, false
	}
	end := uriEnd(text, colon+1)
	if end <= colon+comma || countAlphanumerics(text[colon+comma:end]) < 4 {
		return secret{}, false
	}
	return secret{colon - len(word), end, hiddenImage}, true
}

// percentEncoded recognises a connection URI or a named secret that is a parameter
// of another URI, and the blank of a credential in one.
func percentEncoded(text []byte, percent int) (secret, bool) {
	rest := text[percent:]
	switch {
	case hasPrefixFold(rest, "%3a%2f%2f"):
		if !isConnectionScheme(text[:percent]) {
			return secret{}, false
		}
		start := percent + len("%3a%2f%2f")
		return tokenSecret(text, start, parameterEnd(text, start))
	case hasPrefixFold(rest, "%3d"):
		if !isSecretName(nameBefore(text, percent)) {
			return secret{}, false
		}
		start := percent + len("%3d")
		return tokenSecret(text, start, parameterEnd(text, start))
	case hasPrefixFold(rest, "%20"):
		return credentials(text, percent, percent+len("%20"))
	default:
		return secret{}, false
	}
}

// credentials recognises the token behind the name of an HTTP authentication
// scheme: Bearer, Basic, and NIP-98's Nostr.
func credentials(text []byte, blank, start int) (secret, bool) {
	scheme := wordBefore(text, blank)
	for start < len(text) && (text[start] == ' ' || text[start] == '\t') {
		start++
	}
	end := start
	for end < len(text) && (isAlphanumeric(text[end]) || text[end] >= 0x80 || bytes.IndexByte([]byte("-._~+/=%"), text[end]) >= 0) {
		end++
	}
	token := text[start:end]
	switch {
	case bytes.EqualFold(scheme, []byte("bearer")):
		if len(token) <= minToken && isLowerWord(token) { // "a bearer token"
			return secret{}, false
		}
	case bytes.EqualFold(scheme, []byte("basic")):
		if len(token) < minToken || isLowerWord(token) {
			return secret{}, false
		}
	case bytes.EqualFold(scheme, []byte("nostr")):
		if len(token) < 20 || isLowerWord(token) {
			return secret{}, false
		}
	default:
		return secret{}, false
	}
	return tokenSecret(text, start, end)
}

// named recognises the value behind a secret's name: name=value, "name":"value",
// and in running text name: value when the value looks like a secret.
func named(text []byte, separator int) (secret, bool) {
	if separator+1 < len(text) && text[separator+1] == '=' {
		return secret{}, false
	}
	end := separator
	for end > 0 && isQuoteOrBlank(text[end-1]) {
		end--
	}
	name, letters := nameBefore(text, end)
	if !isSecretName(name, letters) && !isSecretParameter(text, name, end, separator) && !isTwoWordName(text, name, end) {
		return secret{}, false
	}
	start := separator + 1
	for start < len(text) && (text[start] == ' ' || text[start] == '\\') {
		start++
	}
	if start == len(text) {
		return secret{}, false
	}
	if quote := text[start]; quote == '"' || quote == '\'' {
		return quotedValue(text, start+1, quote)
	}
	return bareValue(text, start, name, text[separator] == '=' || end < separator && text[separator-1] != ' ')
}

// isSecretParameter accepts further names in a URI's query.
func isSecretParameter(text, name []byte, end, separator int) bool {
	before := end - len(name) - 1
	if text[separator] != '=' || before < 0 || text[before] != '?' && text[before] != '&' {
		return false
	}
	for _, exact := range parameterNames {
		if len(name) == len(exact) && bytes.EqualFold(name, []byte(exact)) {
			return true
		}
	}
	return false
}

// isTwoWordName accepts "private key", "secret key" and "seed phrase" in text.
func isTwoWordName(text, name []byte, end int) bool {
	start := end - len(name)
	if len(name) == 0 || start == 0 || text[start-1] != ' ' {
		return false
	}
	if !bytes.EqualFold(name, []byte("key")) && !bytes.EqualFold(name, []byte("phrase")) && !bytes.EqualFold(name, []byte("words")) {
		return false
	}
	return isSecretTagName(wordBefore(text, start-1)) || bytes.EqualFold(wordBefore(text, start-1), []byte("private"))
}

// quotedValue recognises a value up to its closing quote. Where the quotes are escaped
// themselves, those inside the value are more so.
func quotedValue(text []byte, start int, quote byte) (secret, bool) {
	escapes := backslashesBefore(text, start-1)
	end := start
	for end < len(text) && (text[end] != quote || backslashesBefore(text, end) > escapes) {
		end++
	}
	if end < len(text) {
		end = max(start, end-backslashesBefore(text, end))
	}
	return tokenSecret(text, start, end)
}

func backslashesBefore(text []byte, pos int) int {
	start := pos
	for start > 0 && text[start-1] == '\\' {
		start--
	}
	return pos - start
}

// bareValue recognises a value without quotes. Behind an equals sign or a quoted
// name any value is a secret; in running text only one that looks like it, so
// that "invalid preimage: must be 64 digits" stays a sentence.
func bareValue(text []byte, start int, name []byte, assigned bool) (secret, bool) {
	if assigned && (text[start] == '{' || text[start] == '[') {
		if bytes.HasPrefix(text[start:], []byte(Redacted)) {
			return secret{}, false
		}
		end, err := jsontext.Value(text, start)
		if err != nil {
			end = lineEnd(text, start)
		}
		return tokenSecret(text, start, end)
	}
	if bytes.EqualFold(name, []byte("authorization")) || bytes.EqualFold(name, []byte("cookie")) {
		return headerValue(text, start, assigned)
	}
	if end := wordsEnd(text, start); end > start {
		return secret{start, end, Redacted}, true
	}
	end := start
	for end < len(text) && text[end] > ' ' && bytes.IndexByte([]byte("&\"'<>,;(){}[]|\\`"), text[end]) < 0 {
		end++
	}
	if isJSONWord(text[start:end]) || !assigned && !looksSecret(name, text[start:end]) {
		return secret{}, false
	}
	return tokenSecret(text, start, end)
}

// headerValue recognises the value of an HTTP header, to the end of its line. In
// running text one of its words must look like a secret.
func headerValue(text []byte, start int, assigned bool) (secret, bool) {
	value := text[start:min(len(text), start+maxHeader)]
	if end := bytes.IndexAny(value, "\r\n\"\\"); end >= 0 {
		value = value[:end]
	}
	for word := range bytes.FieldsSeq(value) {
		if assigned || isMixed(word) || len(word) >= minSecret || bytes.IndexByte(word, '=') >= 0 {
			return tokenSecret(text, start, start+len(value))
		}
	}
	return secret{}, false
}

// wordsEnd returns the end of twelve or more lower case words, a BIP-39 mnemonic,
// or start when there are fewer.
func wordsEnd(text []byte, start int) int {
	words, end := 0, start
	for pos := start; pos < len(text); {
		first := pos
		for pos < len(text) && text[pos] >= 'a' && text[pos] <= 'z' {
			pos++
		}
		if pos-first < 3 || pos-first > 8 {
			break
		}
		words, end = words+1, pos
		if pos < len(text) && text[pos] == ' ' {
			pos++
		}
	}
	if words < 12 {
		return start
	}
	return end
}

// tokenSecret is a find unless it holds nothing but punctuation, as in "nsec1…" or
// "secret=<value>".
func tokenSecret(text []byte, start, end int) (secret, bool) {
	return secret{start, end, Redacted}, countAlphanumerics(text[start:end]) > 0
}

// looksSecret tells a value from a word of a sentence. A token is also what is paid
// with, so its symbol and its address stay readable.
func looksSecret(name, value []byte) bool {
	if lastName(hexNames, name) < 0 {
		return len(value) >= minSecret && !hasPrefixFold(value, "0x")
	}
	return len(value) >= minSecret || isMixed(value)
}

// isMixed reports whether the word has letters and digits.
func isMixed(word []byte) bool {
	letters, digits := 0, 0
	for _, b := range word {
		switch {
		case isLetter(b):
			letters++
		case b >= '0' && b <= '9':
			digits++
		}
	}
	return len(word) >= minToken && letters > 0 && digits > 0
}

func isJSONWord(token []byte) bool {
	return string(token) == "null" || string(token) == "true" || string(token) == "false"
}

func isLowerWord(token []byte) bool {
	for _, b := range token {
		if b < 'a' || b > 'z' {
			return false
		}
	}
	return true
}

func isConnectionScheme(before []byte) bool {
	for _, scheme := range connectionSchemes {
		if len(before) >= len(scheme) && bytes.EqualFold(before[len(before)-len(scheme):], scheme) {
			return true
		}
	}
	return false
}

func isURIByte(b byte) bool {
	switch b {
	case '"', '\'', '<', '>', '`', '\\', 0x7f:
		return false
	default:
		return b > ' '
	}
}

func isQuoteOrBlank(b byte) bool { return b == '"' || b == ' ' || b == '\'' || b == '\\' }

func uriEnd(text []byte, pos int) int {
	for pos < len(text) && (isURIByte(text[pos]) || text[pos] == '\\' && pos+1 < len(text) && text[pos+1] == '/') {
		pos++
	}
	return pos
}

func parameterEnd(text []byte, pos int) int {
	for pos < len(text) && isURIByte(text[pos]) && text[pos] != '&' {
		pos++
	}
	return pos
}

func lineEnd(text []byte, pos int) int {
	if end := bytes.IndexByte(text[pos:], '\n'); end >= 0 {
		return pos + end
	}
	return len(text)
}

func countAlphanumerics(text []byte) int {
	count := 0
	for _, b := range text {
		if isAlphanumeric(b) {
			count++
		}
	}
	return count
}

func hasPrefixFold(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && bytes.EqualFold(text[:len(prefix)], []byte(prefix))
}
