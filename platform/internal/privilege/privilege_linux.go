// Package privilege answers: what is this process exempt from?
//
// It must not know what the exemption is used for.
package privilege

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// LocksFreely says whether no limit on locked memory binds this process: CAP_IPC_LOCK, held in the system's own user
// namespace, lifts it (mlock(2)). In a namespace of its own a process may show every capability and have none of them here.
//
// tree is the root of the file system.
func LocksFreely(tree fs.FS) (bool, error) {
	status, err := fs.ReadFile(tree, "proc/self/status")
	if err != nil {
		return false, err
	}
	held, err := capable(string(status), unix.CAP_IPC_LOCK)
	if err != nil || !held {
		return false, err
	}
	identity, err := fs.ReadFile(tree, "proc/self/uid_map")
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // a kernel without user namespaces
	}
	if err != nil {
		return false, err
	}
	return strings.Join(strings.Fields(string(identity)), " ") == "0 0 4294967295", nil
}

// capable reads the effective capabilities out of the text of /proc/self/status.
func capable(status string, capability int) (bool, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return false, fmt.Errorf("/proc/self/status: CapEff %q is no set of capabilities", strings.TrimSpace(value))
		}
		return set&(1<<capability) != 0, nil
	}
	return false, errors.New("/proc/self/status states no CapEff")
}
