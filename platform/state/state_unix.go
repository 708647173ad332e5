//go:build unix && !darwin

package state

import (
	"os"
	"path/filepath"
)

// dir is the XDG base directory for state, which must be absolute to count.
func dir() (string, error) {
	if named := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(named) {
		return named, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state"), nil
}
