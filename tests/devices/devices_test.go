package devices

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
	"github.com/bmoe/bmoe/core/probe"
	"github.com/bmoe/bmoe/tests/module"
	"github.com/bmoe/bmoe/tests/synth"
)

// find is the mode in which this program finds devices, in children of its own: its argument is a search, and it prints
// probe.Accelerators, both as JSON.
const find = "--find"

type search struct {
	Model   string // a file; "": none is named
	Measure bool
	Alone   bool          // in this process
	Limit   time.Duration // of a child
}

func TestMain(m *testing.M) {
	if handled, code := probe.Child(context.Background(), os.Args[1:], os.Stdout); handled {
		os.Exit(code)
	}
	if len(os.Args) == 3 && os.Args[1] == find {
		if err := finding(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func finding(text string) error {
	var s search
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	r := probe.Request{Measure: s.Measure, Threads: 1}
	if s.Model != "" {
		m, err := model.Read(s.Model)
		if err != nil {
			return err
		}
		r.Model = m
	}
	on := machine.Profile{Memory: machine.Memory{Available: machine.Known(int64(4<<30), "the test's word")}}
	f := probe.Finder{Load: engine.Libraries, Again: probe.Isolated(s.Limit)}
	if s.Alone {
		f.Again = nil
	}
	found, err := f.Devices(context.Background(), r, on)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// found is what a program finds beside it, with a fault in the module there.
func found(t *testing.T, program, fault string, s search) probe.Accelerators {
	t.Helper()
	if s.Limit == 0 {
		s.Limit = 2 * time.Minute
	}
	line, err := json.Marshal(s)
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), program, find, string(line))
	child.Env = append(os.Environ(), "BMOE_TEST_FAULT="+fault)
	child.Stderr = os.Stderr
	out, err := child.Output()
	require.NoError(t, err)
	var a probe.Accelerators
	require.NoError(t, json.Unmarshal(out, &a), "%s", out)
	return a
}

func subject(t *testing.T, name string) string {
	t.Helper()
	spec, err := synth.Named(name)
	require.NoError(t, err)
	files, err := synth.Write(t.Context(), filepath.Join(t.TempDir(), "model.gguf"), spec, nil)
	require.NoError(t, err)
	return files[0]
}

func faulty(t *testing.T) (program, file string) {
	program = module.Beside(t, "")
	return program, module.Compile(t, program, filepath.Join("testdata", "faulty.c"), "faulty",
		"-L"+filepath.Dir(program), "-lggml", "-lggml-base", "-Wl,-rpath,$ORIGIN")
}

// TestADeviceThatWorks: every question has its answer, and the result is the host's.
func TestADeviceThatWorks(t *testing.T) {
	program, file := faulty(t)
	for _, name := range []string{"qwen3moe-20m", "gpt-oss-20m", "qwen3moe-kquant-20m", "qwen3moe-iq-20m"} {
		a := found(t, program, "", search{Model: subject(t, name), Measure: true})
		require.Len(t, a.Devices, 1)
		d := a.Devices[0]
		assert.Equal(t, []string{file}, a.Modules)
		assert.Equal(t, 1, a.Backends.Loaded.Or(-1))
		assert.Equal(t, 0, a.Backends.Linked.Or(-1))
		assert.Equal(t, "FAULTY0", d.Name)
		assert.Equal(t, "a device[31m of a test", d.Description, "no terminal obeys it")
		require.True(t, machine.IsYes(d.Usable), d.Usable.From())
		assert.Equal(t, int64(8<<30), d.Total.Or(0))
		assert.Equal(t, int64(6<<30), d.Free.Or(0))
		assert.True(t, machine.IsNo(d.SharesHost), "%s", d.SharesHost.From())
		assert.True(t, machine.IsNo(d.Wires))
		assert.True(t, machine.IsYes(d.RunsExperts), d.RunsExperts.From())
		assert.True(t, machine.IsNo(d.NeedsRepack), d.NeedsRepack.From())
		assert.True(t, machine.IsNo(d.HostBuffer))
		assert.False(t, d.HostPointer.Known(), "false is no evidence")
		for what, f := range map[string]machine.Fact[float64]{"read error": d.ReadError, "wide error": d.WideError} {
			e, known := f.Get()
			require.True(t, known, f.From())
			assert.Less(t, e, 1e-9, what)
		}
		for what, f := range map[string]machine.Fact[float64]{"read rate": d.ReadRate, "wide rate": d.WideRate} {
			r, known := f.Get()
			require.True(t, known, f.From())
			assert.Positive(t, r, what)
		}
		assert.True(t, d.Crossing.Known(), d.Crossing.From())
	}
}

// TestFaults: whatever a module or a device does, the search ends, says what was wrong, and everything else stands.
func TestFaults(t *testing.T) {
	program, file := faulty(t)
	path := subject(t, "qwen3moe-20m")
	device := func(check func(t *testing.T, d machine.Device)) func(*testing.T, probe.Accelerators) {
		return func(t *testing.T, a probe.Accelerators) {
			require.Len(t, a.Devices, 1)
			check(t, a.Devices[0])
		}
	}
	// Of a module that no process survives there is no device but its name, and it is not loaded.
	broken := func(why string) func(*testing.T, probe.Accelerators) {
		return func(t *testing.T, a probe.Accelerators) {
			require.Len(t, a.Devices, 1)
			assert.Equal(t, "faulty", a.Devices[0].Name)
			assert.Contains(t, a.Devices[0].Description, file)
			assert.True(t, machine.IsNo(a.Devices[0].Usable))
			assert.Contains(t, a.Devices[0].Usable.From(), why)
			assert.Empty(t, a.Modules)
			assert.Equal(t, 0, a.Backends.Loaded.Or(-1))
		}
	}
	unusable := func(why string) func(*testing.T, probe.Accelerators) {
		return device(func(t *testing.T, d machine.Device) {
			assert.Equal(t, "FAULTY0", d.Name)
			assert.True(t, machine.IsNo(d.Usable))
			assert.Contains(t, d.Usable.From(), why)
			assert.False(t, d.ReadRate.Known())
			assert.False(t, d.WideRate.Known())
		})
	}
	usable := func(check func(t *testing.T, d machine.Device)) func(*testing.T, probe.Accelerators) {
		return device(func(t *testing.T, d machine.Device) {
			assert.True(t, machine.IsYes(d.Usable), d.Usable.From())
			check(t, d)
		})
	}
	for _, c := range []struct {
		fault string
		check func(*testing.T, probe.Accelerators)
	}{
		{"dies-loading", broken("listing the devices of " + file + " ended the process that did it: signal SIGSEGV: segmentation violation")},
		{"dies-listing", broken("listing the devices of " + file + " ended the process that did it: signal SIGSEGV: segmentation violation")},
		{"hangs-listing", broken("no answer within 3s")},
		{"another-release", broken("the compute module " + file + " does not load")},
		{"no-driver", broken("the compute module " + file + " does not load")},
		{"none", func(t *testing.T, a probe.Accelerators) {
			assert.Empty(t, a.Devices)
			assert.Equal(t, 1, a.Backends.Loaded.Or(-1), "it was looked for")
		}},
		{"two", func(t *testing.T, a probe.Accelerators) {
			require.Len(t, a.Devices, 2)
			for i, d := range a.Devices {
				assert.Equal(t, fmt.Sprintf("FAULTY%d", i), d.Name)
				assert.True(t, machine.IsYes(d.Usable), d.Usable.From())
			}
		}},
		{"dies-starting", unusable("its probe ended the process that ran it: signal SIGSEGV: segmentation violation")},
		{"dies-allocating", unusable("its probe ended the process that ran it: signal SIGSEGV")},
		{"dies-computing", unusable("its probe ended the process that ran it: signal SIGSEGV")},
		{"aborts-computing", unusable("its probe ended the process that ran it: exit status 1: llama.cpp can't go on: faulty.c")},
		{"hangs-computing", unusable("its probe gave no answer within 3s")},
		{"says-garbage", unusable("its probe: what it printed is no answer")},
		{"answers-for-another", unusable(`its probe: it answered for another device, "GPU7"`)},
		{"lies", unusable("its probe: device FAULTY0: read_rate is -1")},
		{"chatters", usable(func(t *testing.T, d machine.Device) { assert.True(t, d.ReadRate.Known()) })},
		{"allocates-nothing", unusable("of 6144 MiB that it says are free it allocates no 256 MiB")},
		{"computes-nothing", unusable("it does not compute the matmul: ")},
		{"wraps", usable(func(t *testing.T, d machine.Device) { assert.True(t, machine.IsYes(d.HostPointer)) })},
		{"wraps-nothing", unusable("it says that it wraps memory of the host and does not")},
		{"wraps-another", unusable("it says that it wraps memory of the host and reads something else there")},
		{"wrong-narrow", usable(func(t *testing.T, d machine.Device) {
			assert.InDelta(t, 0.25, d.ReadError.Or(0), 1e-4)
			assert.Less(t, d.WideError.Or(1), 1e-9)
		})},
		{"wrong-wide", usable(func(t *testing.T, d machine.Device) {
			assert.Less(t, d.ReadError.Or(1), 1e-9)
			assert.InDelta(t, 0.25, d.WideError.Or(0), 1e-4)
		})},
		{"no-number", usable(func(t *testing.T, d machine.Device) {
			assert.InDelta(t, 1e9, d.ReadError.Or(0), 0)
			assert.InDelta(t, 1e9, d.WideError.Or(0), 0)
		})},
		{"no-experts", usable(func(t *testing.T, d machine.Device) {
			assert.True(t, machine.IsNo(d.RunsExperts))
			assert.Contains(t, d.RunsExperts.From(), "1 wide with ")
			assert.False(t, d.ReadRate.Known())
			assert.Equal(t, d.RunsExperts.From(), d.WideRate.From())
		})},
		{"no-wide", usable(func(t *testing.T, d machine.Device) {
			assert.True(t, machine.IsNo(d.RunsExperts))
			assert.Contains(t, d.RunsExperts.From(), "128 wide with ")
		})},
		{"repacks", usable(func(t *testing.T, d machine.Device) {
			assert.True(t, machine.IsYes(d.NeedsRepack), d.NeedsRepack.From())
			assert.True(t, machine.IsYes(d.RunsExperts))
		})},
		{"integrated", usable(func(t *testing.T, d machine.Device) {
			assert.True(t, machine.IsYes(d.SharesHost), "what it says is not overturned by what was seen")
			assert.Contains(t, d.SharesHost.From(), "it says")
			assert.False(t, d.Wires.Known())
		})},
		{"shares-host", usable(func(t *testing.T, d machine.Device) {
			assert.True(t, machine.IsYes(d.SharesHost), d.SharesHost.From())
			assert.Contains(t, d.SharesHost.From(), "MiB more in RAM while it held 256")
		})},
		{"no-size", usable(func(t *testing.T, d machine.Device) {
			assert.False(t, d.Total.Known())
			assert.False(t, d.Free.Known())
			assert.True(t, d.ReadRate.Known())
		})},
		{"little-free", usable(func(t *testing.T, d machine.Device) {
			assert.False(t, d.ReadRate.Known())
			assert.Contains(t, d.ReadRate.From(), "half of the 64 MiB free there")
			assert.Less(t, d.ReadError.Or(1), 1e-9)
		})},
	} {
		t.Run(c.fault, func(t *testing.T) {
			limit := time.Duration(0)
			if c.fault == "hangs-listing" || c.fault == "hangs-computing" {
				limit = 3 * time.Second
			}
			a := found(t, program, c.fault, search{Model: path, Measure: true, Limit: limit})
			c.check(t, a)
			p := machine.Profile{Devices: a.Devices}
			require.NoError(t, p.Check())
		})
	}
}

// TestWhatIsAskedOfADevice: without a model, without measuring, and in this process where no child can be started.
func TestWhatIsAskedOfADevice(t *testing.T) {
	program, _ := faulty(t)
	path := subject(t, "qwen3moe-20m")

	d := found(t, program, "", search{Measure: true}).Devices[0]
	assert.True(t, machine.IsYes(d.Usable))
	assert.True(t, d.SharesHost.Known())
	assert.Equal(t, "no model was named", d.RunsExperts.From())
	assert.Equal(t, "no model was named", d.WideRate.From())

	d = found(t, program, "dies-starting", search{Model: path}).Devices[0]
	assert.False(t, d.Usable.Known(), "nobody tried it")
	assert.Equal(t, "--no-probe-io", d.Usable.From())
	assert.Equal(t, int64(8<<30), d.Total.Or(0))

	a := found(t, program, "", search{Model: path, Measure: true, Alone: true})
	require.Len(t, a.Devices, 1)
	assert.True(t, machine.IsYes(a.Devices[0].Usable), a.Devices[0].Usable.From())
	assert.Less(t, a.Devices[0].WideError.Or(1), 1e-9)
	assert.Len(t, a.Modules, 1)
}

// TestTwoModulesWithOneName: the first keeps it, and the other is never loaded.
func TestTwoModulesWithOneName(t *testing.T) {
	program, file := faulty(t)
	data, err := os.ReadFile(filepath.Join(filepath.Dir(program), file))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(program), "libggml-later.so"), data, 0o755))
	a := found(t, program, "", search{})
	require.Len(t, a.Devices, 2)
	assert.Equal(t, []string{file}, a.Modules)
	assert.Equal(t, "later", a.Devices[1].Name)
	assert.Contains(t, a.Devices[1].Usable.From(), "libggml-later.so lists a device FAULTY0, and so does "+file)
}
