// Package probe fills the profiles that a plan reads: it asks the machine, and decides nothing.
package probe

import (
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/platform/cpu"
	"github.com/bmoe/bmoe/platform/memory"
	"github.com/bmoe/bmoe/platform/pages"
)

// Machine takes the facts that cost nothing: no storage is read and no device is touched. A fact that can't be had is
// unknown in the profile, which is valid whatever the error says.
func Machine() (machine.Profile, error) {
	m := machine.Profile{Name: "this machine"}
	m.Cores.Physical = machine.Known(cpu.Physical(), "cores this process may use")
	m.Memory.PageSize = machine.Known(int64(pages.Size()), "asked the system")
	facts, err := memory.Read()
	if err != nil {
		m.Memory.Available = machine.Unknown[int64](err.Error())
		return m, err
	}
	m.Memory.Total = machine.Known(facts.Total, "physical memory of the system")
	m.Memory.Available = machine.Known(min(facts.Available, facts.Total), facts.Why)
	return m, nil
}
