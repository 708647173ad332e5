package probe

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/platform/cpu"
	"github.com/bmoe/bmoe/platform/memory"
)

func TestMachine(t *testing.T) {
	t.Parallel()
	m, err := Machine()
	require.NoError(t, err)
	require.NoError(t, m.Check())
	available, known := m.Memory.Available.Get()
	assert.True(t, known)
	assert.Positive(t, available)
	for name, from := range map[string]string{
		"total": m.Memory.Total.From(), "available": m.Memory.Available.From(), "ratio": m.Memory.CompressorRatio.From(),
		"idle": m.Memory.IdleAnonymous.From(), "pressure": m.Memory.Pressure.From(), "store": m.Memory.ExemptStore.From(),
		"store total": m.Memory.ExemptTotal.From(), "lock": m.Memory.LockInPlace.From(), "classes": m.Cores.ClassesFrom,
	} {
		assert.NotEmpty(t, from, "%s says neither where it came from nor why it is unknown", name)
	}
	assert.Positive(t, m.Cores.Physical.Or(0))
	assert.Positive(t, m.Memory.PageSize.Or(0))
	assert.False(t, m.Storage.Direct.Known(), "no storage is read")
}

func answer[T any](v T, from string) func() (T, string, error) {
	return func() (T, string, error) { return v, from, nil }
}

func refuse[T any](why string) func() (T, string, error) {
	return func() (v T, from string, err error) { return v, "", errors.New(why) }
}

// asked is a machine with an answer to everything.
func asked() questions {
	return questions{
		memory: func() (memory.Facts, error) {
			return memory.Facts{Total: 16 << 30, Available: 9 << 30, Why: "MemAvailable"}, nil
		},
		ends: answer(false, "no group"), compresses: answer(true, "zram"), swaps: answer(false, "no disk"),
		ratio: answer(2.5, "mm_stat"), idle: answer(int64(2<<30), "inactive"),
		store: answer(true, "a lock"), storeTotal: answer(int64(8<<20), "ulimit"), inPlace: answer(int64(8<<20), "ulimit"),
		page: func() int { return 16384 }, physical: func() int { return 6 },
		classes: answer([]cpu.Class{{Count: 2, Frequency: 4e9}, {Count: 4, Frequency: 2e9}}, "sysfs"),
	}
}

func TestMachineIsMadeOfTheAnswers(t *testing.T) {
	t.Parallel()
	m, err := asked().profile()
	require.NoError(t, err)
	require.NoError(t, m.Check())
	assert.Equal(t, machine.Memory{
		Total: machine.Known(int64(16<<30), "physical memory of the system"), Available: machine.Known(int64(9<<30), "MemAvailable"),
		CompressorRatio: machine.Known(2.5, "mm_stat"), IdleAnonymous: machine.Known(int64(2<<30), "inactive"),
		Pressure:    machine.Known(machine.Compresses, "zram"),
		ExemptStore: machine.Yes("a lock"), ExemptTotal: machine.Known(int64(8<<20), "ulimit"), LockInPlace: machine.Known(int64(8<<20), "ulimit"),
		PageSize: machine.Known(int64(16384), "asked the system"),
	}, m.Memory)
	assert.Equal(t, machine.Cores{
		Physical: machine.Known(6, "cores this process may use"),
		Classes:  []machine.CoreClass{{Count: 2, Frequency: 4e9}, {Count: 4, Frequency: 2e9}}, ClassesFrom: "sysfs",
	}, m.Cores)
}

// The total is that of the share this process lives in, and no other figure is more than it.
func TestMachineInAShare(t *testing.T) {
	t.Parallel()
	q := asked()
	q.memory = func() (memory.Facts, error) {
		return memory.Facts{Total: 16 << 30, Available: 3 << 30, Limit: 1 << 30, Why: "memory.max"}, nil
	}
	q.ends, q.inPlace = answer(true, "memory.max"), answer(int64(2<<30), "CAP_IPC_LOCK")
	m, err := q.profile()
	require.NoError(t, err)
	require.NoError(t, m.Check())
	for _, f := range []machine.Fact[int64]{m.Memory.Total, m.Memory.Available, m.Memory.IdleAnonymous, m.Memory.LockInPlace} {
		assert.EqualValues(t, 1<<30, f.Or(0))
	}
	assert.Equal(t, machine.Known(machine.Kills, "memory.max"), m.Memory.Pressure)
	assert.Equal(t, "CAP_IPC_LOCK", m.Memory.LockInPlace.From())
}

// What is not answered is unknown with its reason, and never 0, no or less than the others say.
func TestMachineThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	q := asked()
	q.ends, q.ratio, q.idle = refuse[bool]("no rights to memory.max"), refuse[float64]("no mm_stat"), refuse[int64]("no inactive")
	q.store, q.storeTotal, q.inPlace = refuse[bool]("no store"), refuse[int64]("no total"), refuse[int64]("no VmLck")
	q.classes = refuse[[]cpu.Class]("no sysfs")
	m, err := q.profile()
	require.NoError(t, err)
	require.NoError(t, m.Check())
	assert.Equal(t, machine.Unknown[machine.Pressure]("no rights to memory.max"), m.Memory.Pressure)
	assert.Equal(t, machine.Unknown[float64]("no mm_stat"), m.Memory.CompressorRatio)
	assert.Equal(t, machine.Unknown[int64]("no inactive"), m.Memory.IdleAnonymous)
	assert.Equal(t, machine.Unknown[bool]("no store"), m.Memory.ExemptStore)
	assert.Equal(t, machine.Unknown[int64]("no total"), m.Memory.ExemptTotal)
	assert.Equal(t, machine.Unknown[int64]("no VmLck"), m.Memory.LockInPlace)
	assert.Empty(t, m.Cores.Classes)
	assert.Equal(t, "no sysfs", m.Cores.ClassesFrom)

	q.memory = func() (memory.Facts, error) { return memory.Facts{}, errors.New("no meminfo") }
	m, err = q.profile()
	require.ErrorContains(t, err, "no meminfo")
	require.NoError(t, m.Check())
	assert.Equal(t, machine.Unknown[int64]("no meminfo"), m.Memory.Total)
	assert.Equal(t, machine.Unknown[int64]("no meminfo"), m.Memory.Available)
}
