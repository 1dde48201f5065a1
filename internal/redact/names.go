package redact

import "bytes"

// secretNames are the parts of a key that make its value a secret, in lower case.
// The first line is spec 10 §7.2, the second its fixes, the third what environments
// and wallets call theirs.
var secretNames = newNames(
	"secret", "token", "authorization", "cookie", "password", "private", "nsec", "jwt", "qrimage", "nostrconnect",
	"mnemonic", "seed", "preimage", "signature",
	"passphrase", "seckey", "privkey", "apikey", "api_key", "api-key", "bearer",
)

// exactNames are secret only as the whole key. The last two hold what people write to
// each other and where they live, which is nobody's to read in a log (spec 60 §11.1).
var exactNames = []string{"qr", "sk", "content", "address"}

// parameterNames are secret only as the whole name of a URL's parameter: what signs the
// links of storage services and content networks, and keys of an API.
var parameterNames = []string{"key", "sig", "sign", "auth", "hmac", "policy", "hdnea", "hdnts", "hdntl", "pass", "pwd"}

// hexNames are the words after which 64 hexadecimal digits are a secret in running
// text, and tagNames those that make the rest of a Nostr tag one. They are fewer:
// event ids and public keys must stay readable.
var hexNames = newNames("secret", "private", "privkey", "seckey", "nsec", "mnemonic", "seed", "preimage", "password", "passphrase", "apikey", "api_key", "api-key", "jwt")

var tagNames = []string{"secret", "preimage", "mnemonic", "seed", "nsec", "sk", "password", "privkey", "private_key", "privatekey", "seckey"}

// names are words to look for, and beside each the set of its letters.
type names struct {
	words   [][]byte
	letters []uint32
}

func newNames(words ...string) names {
	var list names
	for _, word := range words {
		list.words = append(list.words, []byte(word))
		list.letters = append(list.letters, letterSet([]byte(word)))
	}
	return list
}

// isSecretKey reports whether the value under the key is a secret.
func isSecretKey(key []byte) bool { return isSecretName(key, letterSet(key)) }

// isSecretName is isSecretKey for a name whose letters are known.
func isSecretName(name []byte, letters uint32) bool {
	if letters&^nameByte == 0 {
		return false
	}
	for _, exact := range exactNames {
		if len(name) == len(exact) && bytes.EqualFold(name, []byte(exact)) {
			return true
		}
	}
	for i, needed := range secretNames.letters {
		if needed&^letters == 0 && lastFold(name, secretNames.words[i]) >= 0 {
			return true
		}
	}
	return false
}

// logKeyEndsAt reports whether the quoted text that ends with the quote at pos is a
// key that most log lines have. It saves time and nothing else: none of them is a
// secret's.
func logKeyEndsAt(text []byte, pos int) bool {
	start := pos
	for start > 0 && pos-start < len("environment") && text[start-1] != '"' {
		start--
	}
	switch string(text[start:pos]) {
	case "id", "level", "time", "event", "method", "params", "result", "message", "code", "traceId", "queueMs", "elapsedMs",
		"retryable", "requestId", "found", "ok", "command", "environment", "dryRun", "data", "action", "input", "pubkey":
		return start > 0 && text[start-1] == '"'
	default:
		return false
	}
}

func isSecretTagName(word []byte) bool {
	for _, exact := range tagNames {
		if len(word) == len(exact) && bytes.EqualFold(word, []byte(exact)) {
			return true
		}
	}
	return false
}

// lastName returns where the last of the names ends in the text, upper and lower
// case alike, or -1.
func lastName(list names, text []byte) int {
	letters := letterSet(text)
	last := -1
	for i, needed := range list.letters {
		if needed&^letters == 0 {
			last = max(last, lastFold(text, list.words[i]))
		}
	}
	return last
}

// lastFold returns where the last occurrence of the lower case word ends, or -1.
func lastFold(text, word []byte) int {
	for start := len(text) - len(word); start >= 0; start-- {
		if text[start]|0x20 == word[0] && bytes.EqualFold(text[start:start+len(word)], word) {
			return start + len(word)
		}
	}
	return -1
}

// nameByte marks, among letterBits, a byte of a name that is no letter.
const nameByte = 1 << 31

// letterBits holds for each byte of a name its letter as a bit, upper and lower
// case alike, and 0 for every other byte.
var letterBits = newLetterBits()

func newLetterBits() (table [256]uint32) {
	for b := range 256 {
		switch {
		case isLetter(byte(b)):
			table[b] = 1 << ((b | 0x20) - 'a')
		case isAlphanumeric(byte(b)) || b == '_' || b == '-' || b == '.':
			table[b] = nameByte
		}
	}
	return table
}

// letterSet returns the letters of the text as a bit set. It lets most names be
// ruled out without a comparison.
func letterSet(text []byte) uint32 {
	var letters uint32
	for _, b := range text {
		letters |= letterBits[b]
	}
	return letters
}

// nameBefore returns the name that ends at end, and its letters.
func nameBefore(text []byte, end int) ([]byte, uint32) {
	start, letters := end, uint32(0)
	for start > 0 && end-start < 64 {
		bits := letterBits[text[start-1]]
		if bits == 0 {
			break
		}
		letters |= bits
		start--
	}
	return text[start:end], letters
}
