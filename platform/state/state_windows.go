package state

import (
	"errors"
	"os"
)

// dir is where what does not roam with the user goes.
func dir() (string, error) {
	if local := os.Getenv("LocalAppData"); local != "" {
		return local, nil
	}
	return "", errors.New("%LocalAppData% is not set")
}
