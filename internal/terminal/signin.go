package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nbd-wtf/go-nostr/nip19"

	"hostr-daemon/internal/actions"
	"hostr-daemon/internal/secrets"
)

// Black on white, whatever the terminal's colours are: signer apps read no code whose
// dark is light.
const (
	blackOnWhite = "\x1b[30;107m"
	ownColours   = "\x1b[0m"
)

// SignInCode prints the code and the link of a sign-in that waits for a person's
// signer app. With colours set, out is a terminal; without, the code is in characters
// alone and readable where they are darker than their ground.
func SignInCode(out io.Writer, code actions.SessionConnectResult, colours bool) error {
	page := &strings.Builder{}
	fmt.Fprintf(page, "%s\n\n%s\n\n", oneLine(code.DisplayTitle), wrap(code.DisplayMessage, ""))
	for line := range strings.Lines(code.QR) {
		line = printable(strings.TrimSuffix(line, "\n"))
		if colours {
			line = blackOnWhite + line + ownColours
		}
		fmt.Fprintln(page, line)
	}
	fmt.Fprintf(page, "\n%s\n", oneLine(code.NostrConnect))
	_, err := io.WriteString(out, page.String())
	return err
}

// Waiting tells how long the command waits for the signer.
func Waiting(out io.Writer, patience time.Duration) error {
	text := counted(int(patience.Seconds()), "second")
	if patience >= time.Minute && patience%time.Minute == 0 {
		text = counted(int(patience.Minutes()), "minute")
	}
	_, err := fmt.Fprintf(out, "Waiting up to %s for the signer app to approve; Ctrl-C gives up.\n", text)
	return err
}

// sessionConnect prints who has signed in.
func sessionConnect(page *resultPage, result actions.SessionConnectResult) error {
	if !result.Authenticated {
		return SignInCode(page, result, false)
	}
	npub, err := nip19.EncodePublicKey(result.Pubkey)
	if err != nil {
		return fmt.Errorf("writing the account that signed in: %w", err)
	}
	signer := "its private key is kept here"
	if result.CredentialType == secrets.BunkerCredential {
		signer = "its signer app signs"
	}
	fmt.Fprintf(page, "Signed in as %s (%s).\nTo act as this account:\n  hostr-daemon call ACTION --as %s\n", npub, signer, result.Pubkey)
	return nil
}
