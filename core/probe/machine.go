// Package probe fills the profiles that a plan reads: it asks the machine, and decides nothing.
package probe

import (
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/platform/memory"
)

// Machine takes the facts that cost nothing: no storage is read and no device is touched. A fact that can't be had is
// unknown in the profile, which is valid whatever the error says.
func Machine() (machine.Profile, error) {
	facts, err := memory.Read()
	if err != nil {
		return machine.Profile{}, err
	}
	return machine.Profile{Holdable: facts.Available, HoldableFrom: facts.Why}, nil
}
