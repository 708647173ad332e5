// Package process answers: which program file is this, and what does this process hold and has it read?
//
// It must not know what the program does.
package process

import (
	"fmt"
	"os"
	"path/filepath"
)

// Unknown is the value of a figure that the system does not state.
const Unknown = int64(-1)

// Usage is what this process holds now and has done since it started. Sizes are bytes; a figure may be Unknown.
type Usage struct {
	Anonymous    int64 // memory in RAM that no file backs: what cannot be dropped
	Locked       int64 // memory that is locked in place
	Resident     int64 // all memory in RAM, mapped files included
	PeakResident int64 // the most that Resident has been
	StorageRead  int64 // bytes fetched from storage on this process's account, page cache hits left out
	MajorFaults  int64 // page faults that had to wait for storage
}

var unknown = Usage{Anonymous: Unknown, Locked: Unknown, Resident: Unknown, PeakResident: Unknown, StorageRead: Unknown, MajorFaults: Unknown}

// Executable is the absolute path of the running program, symbolic links resolved.
func Executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the running program: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("resolve the running program's path: %w", err)
	}
	return resolved, nil
}

// Read takes this process's figures now. It costs tens of microseconds.
func Read() (Usage, error) {
	u, err := read()
	if err != nil {
		return Usage{}, fmt.Errorf("read what this process uses: %w", err)
	}
	return u, nil
}
