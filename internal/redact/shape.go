package redact

import "bytes"

// secret is a part of a text that must not be shown.
type secret struct {
	start, end  int
	replacement string
}

const (
	hiddenImage  = "[image]"
	hiddenBase64 = "[base64]"
	hiddenHex    = "[hex]"
	// hexKey is the length of a private key, or of any other 32 bytes, in hex.
	hexKey = 64
	// longRun is the length from which a run of base64 or hex is content rather than
	// an identifier.
	longRun = 256
	// minToken is how much of a bech32 key or of an encoded part must follow for it to
	// be one rather than a mention of the form.
	minToken = 6
	// minSecret is the length from which a word behind a secret's name is no word.
	minSecret = 20
)

// Classes of bytes. A run is a stretch of base64 or base64url digits; every other
// byte ends it. Hooks are bytes at which a secret may be recognised, word hooks only
// behind the last letter of a word that is looked for.
const (
	digit    = 0
	ender    = 1
	hook     = 2
	wordHook = 4
)

var classes = newClasses()

func newClasses() (classes [256]byte) {
	for b := range 256 {
		if !isAlphanumeric(byte(b)) && b != '+' && b != '/' && b != '-' && b != '_' {
			classes[b] = ender
		}
	}
	for _, b := range ":=%" {
		classes[b] = ender | hook
	}
	for _, b := range " \t" { // behind "Bearer", "Nostr" and "Basic"
		classes[b] = ender | wordHook
	}
	for _, b := range "1J" { // the ends of "nsec1" and of "eyJ"
		classes[b] = digit | wordHook
	}
	return classes
}

// wordEnds are the last letters of the words before word hooks.
var wordEnds = [256]bool{'r': true, 'R': true, 'c': true, 'C': true, 'y': true}

// findSecret returns the first secret that begins at from or behind it. What
// stands before from may still name it.
//
// Every byte of every log line passes here, so it looks at the hooks only. Long runs
// are found by one probe in each block: a run that is as long as a block cannot lie
// between two probes.
func findSecret(text []byte, from int) (secret, bool) {
	probed := from // what stands before was part of a run that is no secret
	for block := from; block < len(text); block += hexKey {
		stop := min(block+hexKey, len(text))
		run, long := secret{}, false
		if probe := stop - 1; stop-block == hexKey && probe >= probed && classes[text[probe]]&ender == 0 {
			start, end := runStart(text, probe, probed), runEnd(text, probe)
			if end-start >= hexKey {
				run, long = longSecret(text, start, end)
			}
			if long {
				stop = max(block, run.start)
			}
			probed = end
		}
		if found, ok := findHook(text, block, stop, from); ok {
			return found, true
		}
		if long {
			return run, true
		}
	}
	return secret{}, false
}

// findHook returns the first secret that is recognised at a hook in text[pos:stop].
func findHook(text []byte, pos, stop, from int) (secret, bool) {
	for ; pos < stop; pos++ {
		class := classes[text[pos]]
		if class < hook || class&hook == 0 && (pos == 0 || !wordEnds[text[pos-1]]) {
			continue
		}
		if found, ok := atHook(text, pos, from); ok {
			return found, true
		}
	}
	return secret{}, false
}

// atHook recognises what the byte at pos may be the middle or the end of.
func atHook(text []byte, pos, from int) (found secret, ok bool) {
	switch text[pos] {
	case '1':
		found, ok = bech32Key(text, pos)
	case 'J':
		found, ok = webToken(text, pos)
	case ' ', '\t':
		found, ok = credentials(text, pos, pos+1)
	case ':':
		if pos == 0 || text[pos-1] != '"' || !logKeyEndsAt(text, pos-1) {
			found, ok = atColon(text, pos)
		}
	case '=':
		found, ok = named(text, pos)
	case '%':
		found, ok = percentEncoded(text, pos)
	}
	if !ok || bytes.HasPrefix(text[found.start:], []byte(Redacted)) {
		return secret{}, false
	}
	found.start = max(found.start, from)
	return found, found.end > found.start
}

// bech32Key recognises nsec1… (NIP-19) and ncryptsec1… (NIP-49) by the "sec1" they
// share.
func bech32Key(text []byte, one int) (secret, bool) {
	if one < 3 || !bytes.EqualFold(text[one-3:one], []byte("sec")) {
		return secret{}, false
	}
	end, digits := one+1, 0
	for ; end < len(text) && (classes[text[end]]&ender == 0 || text[end] >= 0x80); end++ {
		if isAlphanumeric(text[end]) {
			digits++
		}
	}
	if digits < minToken {
		return secret{}, false
	}
	start := one - 3
	for start > 0 && one-start < len("ncryptsec") && isLetter(text[start-1]) {
		start--
	}
	return secret{start, end, Redacted}, true
}

// webToken recognises a JWT, or a single long part of one, by the "eyJ" that the
// base64 of a JSON object begins with.
func webToken(text []byte, pos int) (secret, bool) {
	if pos < 2 || text[pos-1] != 'y' || text[pos-2] != 'e' {
		return secret{}, false
	}
	part := runEnd(text, pos)
	if part-pos < minToken {
		return secret{}, false
	}
	end := dottedEnd(text, part)
	return secret{pos - 2, end, Redacted}, end > part || part-pos >= hexKey
}

// dottedEnd returns the end of the parts that follow a run, joined by dots.
func dottedEnd(text []byte, end int) int {
	for end+1 < len(text) && text[end] == '.' && classes[text[end+1]]&ender == 0 {
		end = runEnd(text, end+1)
	}
	return end
}

// longSecret recognises 64 hex digits behind a secret's name, and content too long
// to be an identifier. Bech32 (an invoice, an naddr) has one case only and stays.
func longSecret(text []byte, start, end int) (secret, bool) {
	run := text[start:end]
	tail := start + bytes.LastIndexAny(run, "-_+/") + 1
	if tail+2 < end && text[tail] == '0' && text[tail+1]|0x20 == 'x' {
		tail += 2
	}
	if end-tail >= hexKey && allHex(text[tail:end]) {
		if namedBefore(text, tail) {
			return secret{tail, end, Redacted}, true
		}
		return secret{tail, end, hiddenHex}, end-tail > longRun
	}
	if len(run) > longRun && mixedCase(run) {
		return secret{start, dottedEnd(text, end), hiddenBase64}, true
	}
	return secret{}, false
}

// namedBefore reports whether the words before pos say that a secret follows,
// and not a public key or an event.
func namedBefore(text []byte, pos int) bool {
	window := text[max(0, pos-48):pos]
	if cut := bytes.LastIndexAny(window, ",;{}&\n"); cut >= 0 {
		window = window[cut+1:]
	}
	named := lastName(hexNames, window)
	end := len(window)
	if end > 1 && text[pos-2] == '0' && text[pos-1]|0x20 == 'x' {
		end -= len("0x")
	}
	for end > 0 && !isAlphanumeric(window[end-1]) {
		end--
	}
	if word := wordBefore(window, end); bytes.EqualFold(word, []byte("sk")) {
		return true
	}
	return named >= 0 && lastFold(window, []byte("pub")) < named && lastFold(window, []byte("event")) < named
}

func wordBefore(text []byte, end int) []byte {
	start := end
	for start > 0 && isLetter(text[start-1]) {
		start--
	}
	return text[start:end]
}

func runStart(text []byte, pos, from int) int {
	for pos > from && classes[text[pos-1]]&ender == 0 {
		pos--
	}
	return pos
}

func runEnd(text []byte, pos int) int {
	for pos < len(text) && classes[text[pos]]&ender == 0 {
		pos++
	}
	return pos
}

func allHex(text []byte) bool {
	for _, b := range text {
		if (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'f') {
			return false
		}
	}
	return true
}

func mixedCase(text []byte) bool {
	upper, lower := false, false
	for _, b := range text {
		upper = upper || b >= 'A' && b <= 'Z'
		lower = lower || b >= 'a' && b <= 'z'
		if upper && lower {
			return true
		}
	}
	return false
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func isAlphanumeric(b byte) bool { return isLetter(b) || b >= '0' && b <= '9' }
