// Package probe fills the profiles that a plan reads: it asks the machine, and decides nothing.
package probe

import (
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/platform/cpu"
	"github.com/bmoe/bmoe/platform/lock"
	"github.com/bmoe/bmoe/platform/memory"
	"github.com/bmoe/bmoe/platform/pages"
)

// Machine takes the facts that cost nothing: no storage is read and no device is touched. A fact that can't be had is
// unknown in the profile, with the reason, and the profile is valid whatever the error says.
func Machine() (machine.Profile, error) { return system.profile() }

// questions are what a machine is asked for nothing.
type questions struct {
	memory                  func() (memory.Facts, error)
	ends, compresses, swaps func() (bool, string, error)
	ratio                   func() (float64, string, error)
	idle                    func() (int64, string, error)
	store                   func() (bool, string, error)
	storeTotal, inPlace     func() (int64, string, error)
	page                    func() int
	physical                func() int
	classes                 func() ([]cpu.Class, string, error)
}

// system asks the one that this program runs on.
var system = questions{
	memory: memory.Read,
	ends:   memory.Ends, compresses: memory.Compresses, swaps: memory.Swaps,
	ratio: memory.CompressorRatio, idle: memory.IdleAnonymous,
	store: lock.Store, storeTotal: lock.StoreTotal, inPlace: lock.InPlace,
	page: pages.Size, physical: cpu.Physical, classes: cpu.Classes,
}

// fact is the answer to a question.
func fact[T any](value T, from string, err error) machine.Fact[T] {
	if err != nil {
		return machine.Unknown[T](err.Error())
	}
	return machine.Known(value, from)
}

func (q questions) profile() (machine.Profile, error) {
	m := machine.Profile{Name: "this machine"}
	m.Cores.Physical = machine.Known(q.physical(), "cores this process may use")
	classes, from, err := q.classes()
	if m.Cores.ClassesFrom = from; err != nil {
		m.Cores.ClassesFrom = err.Error()
	}
	for _, c := range classes {
		m.Cores.Classes = append(m.Cores.Classes, machine.CoreClass{Count: c.Count, Frequency: c.Frequency})
	}

	m.Memory.PageSize = machine.Known(int64(q.page()), "asked the system")
	m.Memory.Pressure = machine.PressureOf(fact(q.ends()), fact(q.compresses()), fact(q.swaps()))
	m.Memory.CompressorRatio = fact(q.ratio())
	m.Memory.IdleAnonymous = fact(q.idle())
	m.Memory.ExemptStore = fact(q.store())
	m.Memory.ExemptTotal = fact(q.storeTotal())
	m.Memory.LockInPlace = fact(q.inPlace())
	facts, err := q.memory()
	if err != nil {
		m.Memory.Total = machine.Unknown[int64](err.Error())
		m.Memory.Available = machine.Unknown[int64](err.Error())
		return m, err
	}
	total, from := facts.Total, "physical memory of the system"
	if facts.Limit > 0 && facts.Limit < total {
		total, from = facts.Limit, "the tightest limit on this process"
	}
	m.Memory.Total = machine.Known(total, from)
	m.Memory.Available = machine.Known(min(facts.Available, total), facts.Why)
	// The figures move while they are read, one after the other.
	for _, f := range []*machine.Fact[int64]{&m.Memory.IdleAnonymous, &m.Memory.ExemptTotal, &m.Memory.LockInPlace} {
		if n, known := f.Get(); known && n > total {
			*f = machine.Known(total, f.From())
		}
	}
	return m, nil
}
