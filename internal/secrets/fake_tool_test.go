package secrets

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The fake keyring commands keep an entry as a file in a folder. The file
// "behaviour" there says how the keyring feels; every call is noted in "calls".
const (
	folderVariable = "FAKE_KEYRING"
	behaviourFile  = "behaviour"
	callsFile      = "calls"
)

// fakeTool makes a command of the name that acts like the real one, and returns its
// path and its folder.
func fakeTool(t testing.TB, name string) (path, folder string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	path = filepath.Join(t.TempDir(), name)
	script := fmt.Sprintf("#!/bin/sh\n%s %s=%s %s='%s' exec '%s' \"$@\"\n", endAtOnce, roleVariable, name, folderVariable, folder, self)
	writeFile(t, path, script, 0o700)
	return path, folder
}

func behave(t testing.TB, folder, behaviour string) {
	t.Helper()
	writeFile(t, filepath.Join(folder, behaviourFile), behaviour, 0o600)
}

// fakeCall is one call of a fake command.
type fakeCall struct {
	args      []string
	behaviour string
	entry     string // file of the entry
}

func newFakeCall(keyFlag string) fakeCall {
	call := fakeCall{args: os.Args[1:]}
	folder := os.Getenv(folderVariable)
	content, _ := os.ReadFile(filepath.Join(folder, behaviourFile))
	call.behaviour = string(content)
	calls, err := os.OpenFile(filepath.Join(folder, callsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintln(calls, strings.Join(call.args, " "))
		_ = calls.Close()
	}
	for i, arg := range call.args[:max(len(call.args)-1, 0)] {
		if arg == keyFlag {
			call.entry = filepath.Join(folder, fmt.Sprintf("entry-%x", call.args[i+1]))
		}
	}
	return call
}

// all returns the entries by key.
func (fakeCall) all() map[string]string {
	entries := make(map[string]string)
	const prefix = "entry-"
	paths, _ := filepath.Glob(filepath.Join(os.Getenv(folderVariable), prefix+"*"))
	for _, path := range paths {
		key, _ := hex.DecodeString(strings.TrimPrefix(filepath.Base(path), prefix))
		content, _ := os.ReadFile(path)
		entries[string(key)] = string(content)
	}
	return entries
}

// fakeSecretTool answers as secret-tool 0.20.5 does with gnome-keyring 42.
func fakeSecretTool() int {
	call := newFakeCall("key")
	say := func(text string) int {
		fmt.Fprintln(os.Stderr, "secret-tool: "+text)
		return 1
	}
	switch call.behaviour {
	case "no bus":
		return say("Cannot autolaunch D-Bus without X11 $DISPLAY")
	case "no service":
		return say("The name org.freedesktop.secrets was not provided by any .service files")
	case "hangs":
		time.Sleep(time.Hour) // until it is killed
	case "strange":
		return say("canary out of the blue")
	}
	if os.Getenv("LC_ALL") != "C" || os.Getenv(keyVariable) != "" {
		return say("the environment is wrong")
	}
	if call.args[0] == "search" {
		for key, value := range call.all() {
			fmt.Printf("[/1]\nlabel = Hostr %s\nsecret = %s\n", key, value)
			fmt.Fprintf(os.Stderr, "attribute.key = %s\nattribute.service = network.hostr.cli\n", key)
		}
		return 0
	}
	_, err := os.Stat(call.entry)
	stored, locked := err == nil, call.behaviour == "locked"
	switch call.args[0] {
	case "lookup":
		content, _ := os.ReadFile(call.entry)
		if stored && locked {
			return say("Cannot get secret of a locked object")
		}
		fmt.Print(string(content))
	case "store":
		if locked || call.behaviour == "locked for writing" {
			return say("Cannot create an item in a locked collection")
		}
		value, _ := io.ReadAll(os.Stdin)
		if len(value) > maxSecretToolValue {
			fmt.Fprintln(os.Stderr, "secret-tool: password is too long")
			value = value[:maxSecretToolValue+1]
		}
		stored = os.WriteFile(call.entry, value, 0o600) == nil
	case "clear":
		if locked || call.behaviour == "does not clear" {
			return 1
		}
		_ = os.Remove(call.entry)
	}
	if !stored {
		return 1
	}
	return 0
}

// fakeSecurity answers as the security command of macOS does.
func fakeSecurity() int {
	call := newFakeCall("-a")
	if call.behaviour == "locked" {
		fmt.Fprintln(os.Stderr, "security: SecKeychainItemCopyContent: User interaction is not allowed.")
		return keychainNotPrompted
	}
	if call.args[0] == "dump-keychain" {
		fmt.Print("keychain: \"/login.keychain-db\"\nclass: \"genp\"\nattributes:\n    \"acct\"<blob>=\"other\"\n    \"svce\"<blob>=\"other.program\"\n")
		for key := range call.all() {
			fmt.Printf("keychain: \"/login.keychain-db\"\nversion: 512\nclass: \"genp\"\nattributes:\n    0x00000007 <blob>=\"%s\"\n    \"acct\"<blob>=\"%s\"\n    \"svce\"<blob>=\"%s\"\n", service, key, service)
		}
		return 0
	}
	content, err := os.ReadFile(call.entry)
	switch call.args[0] {
	case "add-generic-password":
		if call.behaviour == "foreign item" && err == nil {
			return 51
		}
		for i, arg := range call.args {
			if arg == "-w" {
				_ = os.WriteFile(call.entry, []byte(call.args[i+1]), 0o600)
			}
		}
		return 0
	case "find-generic-password":
		fmt.Println(string(content))
	case "delete-generic-password":
		_ = os.Remove(call.entry)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "security: SecKeychainSearchCopyNext: The specified item could not be found in the keychain.")
		return keychainNotFound
	}
	return 0
}
