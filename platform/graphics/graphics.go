// Package graphics answers: does the system's own graphics device share the host's memory?
//
// It knows the system's native interface alone, neither ggml's devices nor what they are used for. An error is the reason why
// there is no answer, which is not a "no".
package graphics

import "fmt"

// Unified names the system's default graphics device, as its native interface does, and says whether its memory is the host's.
func Unified() (device string, unified bool, err error) {
	device, unified, err = defaultDevice()
	if err != nil {
		return "", false, fmt.Errorf("whether the graphics device shares the host's memory is not known: %w", err)
	}
	return device, unified, nil
}
