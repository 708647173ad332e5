//go:build !darwin

package graphics

import "errors"

// defaultDevice has nobody to ask: no interface of this system names one default device and states whose memory it uses. A
// backend says it of its own devices.
func defaultDevice() (string, bool, error) {
	return "", false, errors.New("this system has no interface that says so of a default device")
}
