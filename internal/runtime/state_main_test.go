package runtime

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

// lockHolderVariable makes the test binary a second daemon: it holds the state
// directory the variable names until its standard input ends.
const lockHolderVariable = "HOSTRD_TEST_LOCK_HOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockHolderVariable); dir != "" {
		if err := holdStateDirectory(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func holdStateDirectory(dir string) error {
	state := OpenState(context.Background(), StateOptions{Dir: dir, Environment: "test", Logger: zerolog.Nop()})
	if _, err := state.Store(context.Background()); err != nil {
		return err
	}
	fmt.Println("held")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return state.Close()
}
