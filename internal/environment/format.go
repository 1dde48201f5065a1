package environment

import (
	"encoding/hex"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/sha3"
)

// The check functions return what is wrong with a text, "" when nothing is. They
// never repeat more of it than scheme and host: a URL may carry a key.

// relayHost is what the relay layer can connect to (spec 82 §1.1 step 5).
var relayHost = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func checkRelayURL(relayURL string) string {
	if problem := checkURL(relayURL, "wss", "ws"); problem != "" {
		return problem
	}
	parsed, err := url.Parse(relayURL)
	switch {
	case err != nil:
		return "it is not a URL"
	case parsed.User != nil:
		return "a relay URL carries no user name or password"
	case !relayHost.MatchString(strings.ToLower(parsed.Hostname())):
		return "relays need a host name of letters, digits, hyphens and dots, or an IPv4 address"
	case strings.Trim(parsed.Path, "/") == "" && (parsed.RawQuery != "" || parsed.Fragment != ""):
		return "a relay URL with a query needs a path before it"
	}
	return ""
}

func checkHTTPURL(httpURL string) string { return checkURL(httpURL, "https", "http") }

func checkWebSocketURL(socketURL string) string { return checkURL(socketURL, "wss", "ws") }

// checkURL wants an absolute URL of one of the schemes.
func checkURL(text string, schemes ...string) string {
	wanted := "expected a URL that starts with " + strings.Join(schemes, ":// or ") + "://"
	if strings.ContainsAny(text, " \t\r\n") {
		return wanted + " and holds no white space"
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return wanted
	}
	known := false
	for _, scheme := range schemes {
		known = known || strings.EqualFold(parsed.Scheme, scheme)
	}
	if !known {
		return wanted
	}
	if parsed.Hostname() == "" {
		return wanted + " and a host name"
	}
	if port := parsed.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "its port must be from 1 to 65535"
		}
	}
	return ""
}

// checkAPIBase wants an HTTP URL that paths can be appended to.
func checkAPIBase(base string) string {
	if problem := checkHTTPURL(base); problem != "" {
		return problem
	}
	if strings.ContainsAny(base, "?#") {
		return "paths are appended to this URL: it must have no query or fragment"
	}
	return ""
}

var hexPubkey = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

func checkPubkey(pubkey string) string {
	if !hexPubkey.MatchString(pubkey) {
		return "expected a public key of 64 hex digits"
	}
	return ""
}

var hexAddress = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)

// checkAddress wants an EVM address; one in mixed case must carry the right EIP-55
// checksum, because a wrong contract loses money.
func checkAddress(address string) string {
	if !hexAddress.MatchString(address) {
		return "expected an address: 0x and 40 hex digits"
	}
	digits := address[2:]
	if digits == strings.ToLower(digits) || digits == strings.ToUpper(digits) {
		return ""
	}
	if digits != checksummed(strings.ToLower(digits)) {
		return "its upper and lower case do not match its EIP-55 checksum: a digit is wrong, or write it all in lower case"
	}
	return ""
}

// checksummed writes lowercase hex digits of an address as EIP-55 says.
func checksummed(digits string) string {
	keccak := sha3.NewLegacyKeccak256()
	keccak.Write([]byte(digits))
	hash := hex.EncodeToString(keccak.Sum(nil))
	mixed := []byte(digits)
	for i, c := range mixed {
		if c >= 'a' && hash[i] >= '8' {
			mixed[i] = c - 'a' + 'A'
		}
	}
	return string(mixed)
}

var hostedPaymaster = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// checkPaymaster wants an address or the word of a hosted paymaster, such as pimlico.
func checkPaymaster(paymaster string) string {
	if hostedPaymaster.MatchString(paymaster) {
		return ""
	}
	return checkAddress(paymaster)
}

// schemeAndHost is as much of a URL as may be shown.
func schemeAndHost(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return "(unreadable URL)"
	}
	return parsed.Scheme + "://" + parsed.Host
}
