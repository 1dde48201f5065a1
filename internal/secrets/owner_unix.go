//go:build unix

package secrets

import (
	"os"
	"syscall"
)

// keepOwner gives a new file the owner of the one it is to replace: a command run as
// root must not take a user's secrets from their daemon. It is tried as far as the
// system allows.
func keepOwner(fresh, replaced string) {
	if os.Geteuid() != 0 {
		return
	}
	info, err := os.Stat(replaced)
	if err != nil {
		return
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Chown(fresh, int(owner.Uid), int(owner.Gid))
	}
}
