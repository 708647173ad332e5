package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const probed = "measured by the test"

func sample() Profile {
	return Profile{
		Name: "laptop",
		Memory: Memory{
			Total: Known(int64(16<<30), probed), Available: Known(int64(8<<30), probed), Keepable: Unknown[int64]("not asked"),
			CompressorRatio: Known(2.5, probed), IdleAnonymous: Known(int64(1<<30), probed), Pressure: Known(Compresses, probed),
			ExemptStore: Yes(probed), ExemptTotal: Known(int64(9<<30), probed), LockInPlace: Known(int64(0), probed), PageSize: Known(int64(16384), probed),
		},
		Cores:    Cores{Physical: Known(10, probed), Classes: []CoreClass{{4, 4_400_000_000}, {6, 2_900_000_000}}, ReadRate: Known(1e11, probed), WideRate: Known(2e11, probed)},
		Backends: Backends{Linked: Known(1, probed), Loaded: Known(0, probed)},
		Devices: []Device{{Name: "GPU0", Description: "a device", Usable: Yes(probed), SharesHost: No(probed), Total: Known(int64(4<<30), probed), Free: Known(int64(3<<30), probed),
			ReadRate: Known(5e10, probed), ReadError: Known(1e-8, probed), WideError: Unknown[float64]("")}},
		Storage: Storage{Direct: Yes(probed), Align: Known(int64(512), probed), From: probed, Curve: []Rate{{Size: 65536, Lanes: 1, Rate: 1e9, Spread: 1.1}, {Size: 65536, Lanes: 4, Rate: 2e9}},
			Refault: Known(2.5e7, probed), MappingSerialises: Unknown[bool]("saw nothing")},
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	var zero Fact[bool]
	assert.False(t, zero.Known())
	assert.False(t, IsYes(zero) || IsNo(zero), "an unknown answer is neither")
	assert.True(t, IsYes(Yes("")) && !IsNo(Yes("")))
	assert.True(t, IsNo(No("")) && !IsYes(No("")))
	f := Known(int64(7), "there")
	v, ok := f.Get()
	assert.True(t, ok)
	assert.Equal(t, int64(7), v)
	assert.Equal(t, "there", f.From())
	assert.Equal(t, int64(7), f.Or(9))
	u := Unknown[int64]("why not")
	assert.Equal(t, int64(9), u.Or(9))
	assert.Equal(t, "why not", u.From())
}

// One answer from three questions: a fact that is missing never looks better than one that was found.
func TestPressure(t *testing.T) {
	t.Parallel()
	unknown := Unknown[bool]("could not be read")
	for _, c := range []struct {
		ends, compresses, swaps Fact[bool]
		want                    Fact[Pressure]
	}{
		{Yes("limit"), Yes("c"), Yes("s"), Known(Kills, "limit")},
		{No(""), Yes("zram"), Yes("s"), Known(Compresses, "zram")},
		{No(""), No(""), Yes("swap"), Known(Swaps, "swap")},
		{No(""), unknown, Yes("swap"), Unknown[Pressure]("could not be read")},
		{unknown, Yes("zram"), No(""), Unknown[Pressure]("could not be read")},
		{No(""), No(""), unknown, Unknown[Pressure]("could not be read")},
	} {
		assert.Equal(t, c.want, PressureOf(c.ends, c.compresses, c.swaps))
	}
	none := PressureOf(No(""), No(""), No(""))
	assert.Equal(t, Kills, none.Or(""))
}

func TestDevice(t *testing.T) {
	t.Parallel()
	p := sample()
	d, ok := p.Device("GPU0")
	assert.True(t, ok)
	assert.Equal(t, "a device", d.Description)
	_, ok = p.Device("GPU1")
	assert.False(t, ok)
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, p := range []Profile{sample(), {}} {
		var text bytes.Buffer
		require.NoError(t, p.Encode(&text))
		back, err := Decode(&text)
		require.NoError(t, err)
		assert.Equal(t, p, *back)
	}
	var text bytes.Buffer
	require.NoError(t, new(Profile).Encode(&text))
	assert.Contains(t, text.String(), `"value": null`, "an unknown fact is written, and as unknown")
}

// A profile is given away: it holds no path and so no user's name.
func TestEncodeTakesPathsOut(t *testing.T) {
	t.Parallel()
	p := sample()
	p.Name = "the machine of /home/somebody"
	p.Memory.Available = Known(int64(1), `read from C:\Users\somebody\limits`)
	p.Storage.From = "reads of /home/somebody/models/big.gguf, at 10 MB/s (and ~/x)"
	p.Devices[0].Description = `driver at \\server\share, v1/2`
	p.Devices[0].Usable = No("ended by signal 11 in '/opt/somebody/lib.so'")
	var text bytes.Buffer
	require.NoError(t, p.Encode(&text))
	for _, part := range []string{"somebody", "Users", "server", "opt", "~/x"} {
		assert.NotContains(t, text.String(), part)
	}
	assert.Contains(t, text.String(), "at 10 MB/s (and (a path))", "what is no path stays")
	assert.Contains(t, text.String(), "v1/2")
	assert.Equal(t, "the machine of /home/somebody", p.Name, "the profile itself is left alone")
}

// A profile comes from someone else: nothing in it is obeyed by a terminal.
func TestDecodeTakesControlsOut(t *testing.T) {
	t.Parallel()
	text := `{"profile":"machine","version":1,"name":"a\u001b[31m\nlaptop","memory":{"available":{"value":1,"from":"a\u0007\tbell"}},"devices":[{"name":"GPU\u001b0"}]}`
	p, err := Decode(strings.NewReader(text))
	require.NoError(t, err)
	assert.Equal(t, "a[31m laptop", p.Name)
	assert.Equal(t, "a bell", p.Memory.Available.From())
	assert.Equal(t, "GPU0", p.Devices[0].Name)
}

// Every contradiction gets one line that names what contradicts.
func TestCheck(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Profile){
		"memory.total is 0":               func(p *Profile) { p.Memory.Total = Known(int64(0), "") },
		"memory.available is 34359738368": func(p *Profile) { p.Memory.Available = Known(int64(32<<30), "") },
		"memory.available is -1":          func(p *Profile) { p.Memory.Available = Known(int64(-1), "") },
		"memory.lock_in_place is 9000000000000000000, and the most it can be is": func(p *Profile) { p.Memory.LockInPlace = Known(int64(9e18), "") },
		"no run can list one named \"GPU0,GPU1\"":                                func(p *Profile) { p.Devices[0].Name = "GPU0,GPU1" },
		"memory.lock_in_place is 18253611008, more than memory.total":            func(p *Profile) { p.Memory.LockInPlace = Known(int64(17<<30), "") },
		"memory.exempt_total is 18253611008, more than memory.total":             func(p *Profile) { p.Memory.ExemptTotal = Known(int64(17<<30), "") },
		"memory.keepable is":                          func(p *Profile) { p.Memory.Keepable = Known(int64(17<<30), "") },
		"memory.idle_anonymous is":                    func(p *Profile) { p.Memory.IdleAnonymous = Known(int64(17<<30), "") },
		"memory.compressor_ratio is 0.5":              func(p *Profile) { p.Memory.CompressorRatio = Known(0.5, "") },
		"memory.pressure is \"melts\"":                func(p *Profile) { p.Memory.Pressure = Known(Pressure("melts"), "") },
		"there is no such store":                      func(p *Profile) { p.Memory.ExemptStore = No("") },
		"memory.page_size is 0":                       func(p *Profile) { p.Memory.PageSize = Known(int64(0), "") },
		"cores.physical is 0":                         func(p *Profile) { p.Cores.Physical = Known(0, "") },
		"class 0 has 0 cores":                         func(p *Profile) { p.Cores.Classes[0].Count = 0 },
		"the fastest comes first":                     func(p *Profile) { p.Cores.Classes[1].Frequency = 5e9 },
		"cores.read_rate is 0":                        func(p *Profile) { p.Cores.ReadRate = Known(0., "") },
		"cores.read_rate is 1e-300, which nothing is": func(p *Profile) { p.Cores.ReadRate = Known(1e-300, "") },
		"storage.overlap_gain is 1e+300":              func(p *Profile) { p.Storage.OverlapGain = Known(1e300, "") },
		"device GPU0: crossing is 1e+300":             func(p *Profile) { p.Devices[0].Crossing = Known(1e300, "") },
		"at 1e-300 bytes per second":                  func(p *Profile) { p.Storage.Curve[0].Rate = 1e-300 },
		"cores.wide_rate is NaN":                      func(p *Profile) { p.Cores.WideRate = Known(math.NaN(), "") },
		"backends.loaded is -1":                       func(p *Profile) { p.Backends.Loaded = Known(-1, "") },
		"storage.align is 0":                          func(p *Profile) { p.Storage.Align = Known(int64(0), "") },
		"storage.align is 1000":                       func(p *Profile) { p.Storage.Align = Known(int64(1000), "") },
		"storage.refault is -1":                       func(p *Profile) { p.Storage.Refault = Known(-1., "") },
		"storage.curve has a point of 0":              func(p *Profile) { p.Storage.Curve[0].Size = 0 },
		"at +Inf bytes per second":                    func(p *Profile) { p.Storage.Curve[0].Rate = math.Inf(1) },
		"storage.curve has a spread of 0.5":           func(p *Profile) { p.Storage.Curve[0].Spread = 0.5 },
		"two points of 65536 bytes on 4":              func(p *Profile) { p.Storage.Curve[0].Lanes = 4 },
		"one has no name":                             func(p *Profile) { p.Devices[0].Name = "" },
		"two are named \"GPU0\"":                      func(p *Profile) { p.Devices = append(p.Devices, p.Devices[0]) },
		"device GPU0: free is 5368709120":             func(p *Profile) { p.Devices[0].Free = Known(int64(5<<30), "") },
		"device GPU0: wide_rate is 0":                 func(p *Profile) { p.Devices[0].WideRate = Known(0., "") },
		"device GPU0: read_error is -1":               func(p *Profile) { p.Devices[0].ReadError = Known(-1., "") },
	} {
		p := sample()
		require.NoError(t, p.Check())
		spoil(&p)
		err := p.Check()
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "\n")
		assert.Equal(t, err, p.Encode(&bytes.Buffer{}), "what contradicts itself is not saved")
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	var good bytes.Buffer
	p := sample()
	require.NoError(t, p.Encode(&good))
	replaced := func(old, new string) string {
		text := strings.Replace(good.String(), old, new, 1)
		require.NotEqual(t, good.String(), text)
		return text
	}
	for text, want := range map[string]string{
		"":                          "not a machine profile: unexpected end",
		"GGUF":                      "not a machine profile: invalid character",
		"{}":                        `not a machine profile: it has no "profile": "machine"`,
		"[]":                        "not a machine profile: the whole is a JSON array, which it cannot be",
		`{"profile":"model"}`:       `not a machine profile: it has no "profile": "machine"`,
		replaced(": 1,", ": 2,"):    "a machine profile of version 2; this program reads version 1",
		replaced(`"name"`, `"nom"`): `malformed machine profile: json: unknown field "nom"`,
		replaced(`"value": 17179869184`, `"value": "many"`): `a fact is written as {"value":...,"from":"..."}: value is a JSON string, which it cannot be`,
		replaced(`"name": "laptop"`, `"name": 5`):           "malformed machine profile: name is a JSON number, which it cannot be",
		replaced(`"value": 17179869184`, `"number": 1`):     "a fact is written as",
		replaced(`"value": 17179869184`, `"value": 1`):      "contradictory machine profile: memory.available is 8589934592, more than memory.total, which is 1",
		good.String() + "{}":                                "not a machine profile: invalid character '{' after top-level value",
		strings.Repeat(" ", 2<<20):                          "larger than the 1 MiB",
	} {
		_, err := Decode(strings.NewReader(text))
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "\n", "one line")
	}
	_, err := Decode(failing{})
	assert.ErrorContains(t, err, "the drive is gone")
	assert.Error(t, p.Encode(failing{}))
}

func TestFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "machine.json")
	p := sample()
	require.NoError(t, p.Save(path))
	require.NoError(t, p.Save(path), "over an older one")
	back, err := Load(path)
	require.NoError(t, err)
	assert.Equal(t, p, *back)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing else is left behind")

	_, err = Load(path + ".not")
	assert.EqualError(t, err, path+".not: no such file or directory")
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	_, err = Load(path)
	assert.ErrorContains(t, err, path+": not a machine profile")

	assert.ErrorContains(t, p.Save(filepath.Join(path, "below")), "cannot be written")
	assert.ErrorContains(t, p.Save(filepath.Dir(path)), "cannot be written")
	p.Devices[0].Name = ""
	assert.ErrorContains(t, p.Save(path), "one has no name")
}

type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, errors.New("the drive is gone") }
func (failing) Write([]byte) (int, error) { return 0, errors.New("the drive is gone") }

// Whatever a file says, loading it ends with a profile that passes its own check and saves, or with one line.
func FuzzLoad(f *testing.F) {
	var good bytes.Buffer
	p := sample()
	require.NoError(f, p.Encode(&good))
	f.Add(good.Bytes())
	f.Add([]byte(`{"profile":"machine","version":1,"storage":{"curve":[{"size":1,"lanes":1,"rate":1e308}]}}`))
	f.Add([]byte(`{"profile":"machine","version":1,"memory":{"total":{"value":null}},"devices":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Decode(bytes.NewReader(text))
		if err != nil {
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		require.NoError(t, p.Check())
		var saved bytes.Buffer
		require.NoError(t, p.Encode(&saved))
		first := saved.String()
		again, err := Decode(&saved)
		require.NoError(t, err)
		var twice bytes.Buffer
		require.NoError(t, again.Encode(&twice))
		assert.Equal(t, first, twice.String())
	})
}

// Every fact of a profile survives JSON, known or unknown.
func TestEveryFactSurvives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var p Profile
		n := 0
		var visit func(v reflect.Value)
		visit = func(v reflect.Value) {
			switch f := v.Addr().Interface().(type) {
			case *Fact[int64]:
				if rapid.Bool().Draw(t, "known") {
					n++
					*f = Known(int64(n), fmt.Sprint(n))
				}
			case *Fact[float64]:
				*f = Known(rapid.Float64Range(1, 1e12).Draw(t, "rate"), "")
			case *Fact[bool]:
				*f = rapid.SampledFrom([]Fact[bool]{Yes("y"), No("n"), Unknown[bool]("u")}).Draw(t, "answer")
			default:
				if v.Kind() == reflect.Struct {
					for i := range v.NumField() {
						if v.Type().Field(i).IsExported() {
							visit(v.Field(i))
						}
					}
				}
			}
		}
		visit(reflect.ValueOf(&p).Elem())
		text, err := json.Marshal(p)
		require.NoError(t, err)
		var back Profile
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, p, back)
	})
}
