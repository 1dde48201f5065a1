package sessions

import (
	"sync/atomic"

	"hostr-daemon/internal/derivation"
	"hostr-daemon/internal/secrets"
	"hostr-daemon/internal/signer"
)

// Account is who a session is signed in as.
type Account struct {
	pubkey     string
	credential secrets.CredentialType
	holder     *signer.Holder
	// connection is how to reach the remote signer; nil for a local key.
	connection *signer.Connection
	// derived is the account seed that follows from a local key; none for a remote one.
	derived derivation.Seed
	// lost is set while the remote signer has to be restored: the account is signed
	// in but cannot sign.
	lost atomic.Bool
}

// Pubkey is the account, 64 lower-case hex digits.
func (a *Account) Pubkey() string { return a.pubkey }

// Credential tells what the account signs with.
func (a *Account) Credential() secrets.CredentialType { return a.credential }

// Signer acts for the account, also after its connection was restored.
func (a *Account) Signer() signer.Signer { return a.holder }

// NeedsRecovery tells that the remote signer did not answer as it should.
func (a *Account) NeedsRecovery() bool { return a.lost.Load() }

// lose puts the signer away until it is restored.
func (a *Account) lose() {
	if a.connection == nil {
		return
	}
	a.lost.Store(true)
	_ = a.holder.Set(nil) // only another account's signer is refused
}
