package secrets

import (
	"context"
	"fmt"
	"runtime"
)

// Unseen are accounts in a place that is not the chosen one: nobody is signed in to
// them, though nothing is lost.
type Unseen struct {
	Place    Place
	Accounts int
	// Remedy tells what brings them back.
	Remedy string
}

// Elsewhere looks for accounts that the other place has and the chosen one does not;
// nil when there are none. It changes nothing. An encrypted file has no other place:
// what it lacks moves into it.
func Elsewhere(ctx context.Context, options Options) (*Unseen, error) {
	chosen, err := Open(options)
	if err != nil {
		return nil, err
	}
	plain, _ := options.files()
	switch chosen.Place().Kind {
	case PlainFile:
		return unseen(ctx, chosen, newKeyring(runtime.GOOS), moveCommand("plain-file"))
	case Keyring:
		return unseen(ctx, chosen, newPlainFile(plain), moveCommand("keyring"))
	case None:
		return unseen(ctx, chosen, newPlainFile(plain), "--allow-insecure-file-secrets uses it as it is")
	default:
		return nil, nil
	}
}

// moveCommand is what a person types to have the accounts moved.
func moveCommand(to string) string { return "hostr-daemon move-secrets --to " + to }

func unseen(ctx context.Context, chosen *Store, other backend, remedy string) (*Unseen, error) {
	ctx, cancel := context.WithTimeout(ctx, formerLimit)
	defer cancel()
	keys, err := other.keys(ctx)
	if err != nil {
		return nil, err
	}
	found := Unseen{Place: other.place(), Remedy: remedy}
	for _, key := range keys {
		if _, ok := sessionOf(key); !ok {
			continue
		}
		_, seen, err := chosen.Read(ctx, key)
		if err != nil {
			return nil, err
		}
		if !seen {
			found.Accounts++
		}
	}
	if found.Accounts == 0 {
		return nil, nil
	}
	return &found, nil
}

// String is a sentence for people, without a full stop.
func (u *Unseen) String() string {
	return fmt.Sprintf("%d stored sign-ins are not seen, because they rest in another place (%s): %s", u.Accounts, u.Place.Where, u.Remedy)
}
