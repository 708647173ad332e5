package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/params"
)

// Random machines and models. Every fact may be missing.

func maybe[T any](t *rapid.T, name string, value *rapid.Generator[T]) machine.Fact[T] {
	if rapid.IntRange(0, 4).Draw(t, name+" missing") == 0 {
		return machine.Unknown[T]("not measured")
	}
	return machine.Known(value.Draw(t, name), probed)
}

func rate(low, high float64) *rapid.Generator[float64] {
	return rapid.Custom(func(t *rapid.T) float64 {
		return low * math.Pow(high/low, rapid.Float64Range(0, 1).Draw(t, "x"))
	})
}

// oneOf yes or no. A fact that is never No is drawn without it.
func answers(values ...bool) *rapid.Generator[bool] { return rapid.SampledFrom(values) }

func anyMachine(t *rapid.T) machine.Profile {
	total := rapid.Int64Range(gib(1), gib(64)).Draw(t, "total")
	m := machine.Profile{Name: "random"}
	m.Memory = machine.Memory{
		Total:           machine.Known(total, probed),
		Available:       maybe(t, "available", rapid.Int64Range(inMiB(100), total)),
		Keepable:        maybe(t, "keepable", rapid.Int64Range(inMiB(100), total)),
		CompressorRatio: maybe(t, "ratio", rapid.Float64Range(1, 4)),
		IdleAnonymous:   maybe(t, "idle", rapid.Int64Range(0, total)),
		Pressure:        maybe(t, "pressure", rapid.SampledFrom([]machine.Pressure{machine.Compresses, machine.Swaps, machine.Kills})),
		ExemptStore:     maybe(t, "store", answers(true, false)),
		LockInPlace:     maybe(t, "lock", rapid.Int64Range(0, total)),
		PageSize:        machine.Known(int64(4096), probed),
	}
	if rapid.Bool().Draw(t, "no keepable") { // it would hide the others
		m.Memory.Keepable = machine.Unknown[int64]("not asked")
	}
	if !machine.IsNo(m.Memory.ExemptStore) {
		m.Memory.ExemptTotal = maybe(t, "exempt", rapid.Int64Range(0, total))
	}
	m.Cores.ReadRate, m.Cores.WideRate = maybe(t, "host", rate(1e9, 5e11)), maybe(t, "host wide", rate(1e9, 1e12))
	m.Cores.Physical = maybe(t, "cores", rapid.IntRange(1, 64))
	m.Backends = machine.Backends{Linked: maybe(t, "linked", rapid.IntRange(0, 3)), Loaded: maybe(t, "loaded", rapid.IntRange(0, 3))}
	best := rate(2e7, 1e10).Draw(t, "drive")
	if rapid.IntRange(0, 4).Draw(t, "curve") > 0 {
		for lanes := 1; lanes <= 4; lanes *= 2 {
			m.Storage.Curve = append(m.Storage.Curve, machine.Rate{Size: 512 << 10, Lanes: lanes, Rate: best * rapid.Float64Range(0.5, 1).Draw(t, "lane"), Spread: rapid.Float64Range(1, 3).Draw(t, "spread")})
		}
	}
	m.Storage.Refault = maybe(t, "refault", rapid.Float64Range(best/200, best/2))
	m.Storage.Direct = maybe(t, "direct", answers(true, false))
	m.Storage.MappingSerialises = maybe(t, "serialises", answers(true))
	m.Storage.OverlapGain = maybe(t, "overlap", rapid.Float64Range(0.7, 2))
	for i := range rapid.IntRange(0, 2).Draw(t, "devices") {
		d := machine.Device{Name: fmt.Sprintf("DEV%d", i), Description: "a device",
			Usable: maybe(t, "usable", answers(true, true, true, false)), SharesHost: maybe(t, "shares", answers(true, false)),
			HostPointer: maybe(t, "pointer", answers(true)), RunsExperts: maybe(t, "runs", answers(true, true, false)),
			Wires: maybe(t, "wires", answers(true, false)), ReadRate: maybe(t, "device rate", rate(1e9, 1e12)), ReadError: maybe(t, "error", rate(1e-9, 1e-2)),
			WideRate: maybe(t, "device wide", rate(1e10, 1e13)), WideError: maybe(t, "wide error", rate(1e-9, 1e-2)), Crossing: maybe(t, "crossing", rate(1e-6, 1e-2)),
		}
		size := rapid.Int64Range(gib(1), gib(48)).Draw(t, "device memory")
		d.Total = maybe(t, "device total", rapid.Just(size))
		d.Free = maybe(t, "device free", rapid.Int64Range(0, size))
		m.Devices = append(m.Devices, d)
	}
	require.NoError(t, m.Check())
	return m
}

func anyShape(t *rapid.T) shape {
	kinds := []gguf.Type{gguf.Q4_K, gguf.Q2_K, gguf.Q6_K, gguf.Q8_0, gguf.F16}
	s := shape{name: "random", layers: rapid.IntRange(1, 48).Draw(t, "layers"), experts: rapid.IntRange(0, 256).Draw(t, "experts"),
		embedding: 256 * rapid.Int64Range(1, 16).Draw(t, "embedding"), hidden: 256 * rapid.Int64Range(1, 8).Draw(t, "hidden"),
		kv: 256, vocab: rapid.IntRange(256, 200000).Draw(t, "vocab"), context: rapid.IntRange(512, 131072).Draw(t, "context"),
		gateUp: rapid.SampledFrom(kinds).Draw(t, "up"), down: rapid.SampledFrom(kinds).Draw(t, "down"), downOdd: rapid.SampledFrom(kinds).Draw(t, "down odd"),
		dense: gguf.Q4_K, filler: rapid.Int64Range(256, 40000).Draw(t, "filler"), tied: rapid.Bool().Draw(t, "tied"), fused: rapid.Bool().Draw(t, "fused"),
		omitAttention: rapid.Bool().Draw(t, "attention")}
	s.leading = rapid.IntRange(0, s.layers-1).Draw(t, "leading")
	if s.experts > 0 {
		s.used = rapid.IntRange(1, s.experts).Draw(t, "used")
		if rapid.Bool().Draw(t, "sparse") {
			s.used = min(s.used, 8)
		}
	}
	return s
}

func anyPlacement(t *rapid.T, m machine.Profile, s shape) Placement {
	var p Placement
	if rapid.Bool().Draw(t, "projected") {
		width := min(4096, s.context)
		at := rapid.Int64Range(inMiB(1), gib(4)).Draw(t, "compute")
		p.Projection = Projection{Width: width, At: Reserve{Context: rapid.Int64Range(0, gib(2)).Draw(t, "kv"), Compute: at}, Devices: map[string]DeviceWidth{}}
		if rapid.IntRange(0, 4).Draw(t, "sloped") > 0 {
			p.Projection.Half = Reserve{Context: p.Projection.At.Context, Compute: at/2 + rapid.Int64Range(0, at/4).Draw(t, "base")}
		}
		for _, d := range m.Devices {
			if rapid.Bool().Draw(t, "device projected") {
				n := rapid.Int64Range(0, gib(2)).Draw(t, "device compute")
				p.Projection.Devices[d.Name] = DeviceWidth{At: n, Half: n/2 + 1}
			}
		}
	}
	if len(m.Devices) > 0 && rapid.IntRange(0, 2).Draw(t, "placed") == 0 {
		layers := rapid.IntRange(1, s.layers+1).Draw(t, "placed layers")
		p.Layers = layers
		p.Devices = []DeviceShare{{m.Devices[0].Name, layers, gib(1)}}
		if rapid.Bool().Draw(t, "override") {
			p.Overrides = []Override{{`blk\.[0-9]*[02468]\.ffn_(up|down)_exps`, "CPU"}}
		}
	}
	return p
}

// pinnable are pins as they are typed.
var pinnable = []string{"--cache-mb=1000", "--cache-mb=0", "--no-overlap", "--io-threads=2", "--dense-weights=warm", "--dense-weights=pinned", "-c=777", "-c=0", "-c=2147483647", "-ub=64", "--memory=5G",
	"--moe-stream", "--no-moe-stream", "--no-cache-pin", "--cache-pin-fit", "--prefill-device=DEV0", "--prefill-device=", "--prefill-slots=1", "--no-prefill-slots-on-demand",
	"--n-expert-used=2", "-ctk=q8_0", "--no-odirect", "-t=3", "-ngl=3", "--cache-mb=auto"}

func anyPins(t *rapid.T) *params.Set {
	for {
		var args []string
		for _, pin := range pinnable {
			if rapid.IntRange(0, 9).Draw(t, pin) == 0 {
				args = append(args, pin)
			}
		}
		s, err := params.Parse(append([]string{"--auto"}, args...), func(string) (string, bool) { return "", false })
		if err == nil {
			return s
		}
	}
}

func anyInput(t *rapid.T) Input {
	m, s := anyMachine(t), anyShape(t)
	in := Input{Machine: m, Model: s.profile(t), Placement: anyPlacement(t, m, s), Params: anyPins(t), Policy: DefaultPolicy(), Session: able}
	if rapid.IntRange(0, 4).Draw(t, "session") == 0 {
		in.Session = Abilities{rapid.Bool().Draw(t, "locks"), rapid.Bool().Draw(t, "prefills"), rapid.Bool().Draw(t, "places")}
	}
	in.History = anyHistory(t)
	return in
}

func anyHistory(t *rapid.T) Credit {
	if !rapid.Bool().Draw(t, "history") {
		return Credit{}
	}
	return Credit{Runs: 2, CacheBytes: rapid.Int64Range(inMiB(1), gib(20)).Draw(t, "cache then"), HitRate: rapid.Float64Range(0, 1).Draw(t, "hits")}
}

// A pin is never changed, and nothing lossy is armed.
func TestPinsStand(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		p := Make(in)
		for _, row := range params.All() {
			byHand := in.Params.Pinned(row.Name) && in.Params.Text(row.Name) != "auto"
			if row.Name != "auto" && byHand {
				assert.Equal(t, in.Params.Text(row.Name), p.Params.Text(row.Name), row.Name)
				assert.Equal(t, in.Params.Source(row.Name), p.Params.Source(row.Name), row.Name)
			}
			if row.Lossy && !byHand {
				assert.Equal(t, in.Params.Text(row.Name), p.Params.Text(row.Name), row.Name)
			}
			if d, ok := p.find(row.Name); ok && byHand && row.Name != "auto" {
				assert.Equal(t, Operator, d.Source, row.Name)
			}
		}
	})
}

// logged shows the plans a property failed on.
func logged(t *rapid.T, plans ...Plan) {
	for _, p := range plans {
		if t.Failed() {
			var page strings.Builder
			_ = p.WritePage(&page, Style{Full: true})
			t.Log(page.String())
		}
	}
}

// Rows that nobody pinned never exceed a ceiling. What is fixed is not chosen, so where it alone is over, nothing is added.
func TestLedgerStaysUnderCeilings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Make(anyInput(t))
		l := p.Ledger
		defer logged(t, p)
		var fixed, byHand, chosen, exemptByHand, exempt int64
		for _, r := range l.Rows {
			assert.GreaterOrEqual(t, r.Bytes, int64(0), r.Name)
			assert.LessOrEqual(t, r.Exempt, r.Bytes, r.Name)
			switch {
			case r.Kind == InTurn:
			case r.Kind == Fixed:
				fixed += r.Bytes
			case r.ByHand:
				byHand, exemptByHand = byHand+r.Bytes, exemptByHand+r.Exempt
			default:
				chosen, exempt = chosen+r.Bytes, exempt+r.Exempt
			}
		}
		if l.Holdable.Known {
			assert.LessOrEqual(t, chosen, max(0, l.Holdable.Bytes-fixed-byHand))
		}
		if l.Exempt.Known {
			assert.LessOrEqual(t, exempt, max(0, l.Exempt.Bytes-exemptByHand))
		}
	})
}

// Same input, same plan, byte for byte; and the input is not written to.
func TestSameInputSamePlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		before := params.Line("x", in.Params)
		one, err := json.Marshal(Make(in))
		require.NoError(t, err)
		two, err := json.Marshal(Make(in))
		require.NoError(t, err)
		assert.Equal(t, string(one), string(two))
		assert.Equal(t, before, params.Line("x", in.Params))
		require.True(t, json.Valid(one))
	})
}

// The printed line parses back to the same run.
func TestLineReproducesThePlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Make(anyInput(t))
		args := params.Args(p.Params)
		back, err := params.Parse(args, func(string) (string, bool) { return "", false })
		require.NoError(t, err, strings.Join(args, " "))
		assert.Equal(t, params.Line("x", p.Params), params.Line("x", back))
		for _, row := range params.All() {
			if row.Scope == params.Run && (p.Params.Bool("moe-stream") || len(row.Needs) == 0) {
				assert.Equal(t, p.Params.Text(row.Name), back.Text(row.Name), row.Name)
			}
		}
	})
}

// With the width, the prefill device and the dense policy pinned, more memory never predicts slower.
func TestMoreMemoryIsNoSlower(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, s := anyMachine(t), anyShape(t)
		m.Memory.Keepable = machine.Unknown[int64]("not asked")
		total := m.Memory.Total.Or(0)
		low := rapid.Int64Range(inMiB(64), total).Draw(t, "low")
		high := rapid.Int64Range(low, total).Draw(t, "high")
		args := []string{"--auto", "--ubatch=512", "--prefill-device=", "--dense-weights=" + rapid.SampledFrom([]string{"anon", "pinned", "mmap"}).Draw(t, "dense")}
		set, err := params.Parse(args, func(string) (string, bool) { return "", false })
		require.NoError(t, err)
		in := Input{Machine: m, Model: s.profile(t), Placement: anyPlacement(t, m, s), Params: set, Policy: DefaultPolicy(), Session: able, History: anyHistory(t)}
		in.Machine.Memory.Available = machine.Known(low, probed)
		less := Make(in)
		in.Machine.Memory.Available = machine.Known(high, probed)
		more := Make(in)
		if less.Prediction.Known && more.Prediction.Known {
			assert.LessOrEqual(t, more.Prediction.PerToken, less.Prediction.PerToken*(1+1e-9), "%s then %s", less.Outcome, more.Outcome)
		}
	})
}

// facts are all facts of a machine, by their path, each as a pointer to it.
func facts(v reflect.Value, path string, visit func(path string, fact reflect.Value)) {
	switch {
	case strings.HasPrefix(v.Type().Name(), "Fact["):
		visit(path, v)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			facts(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			facts(v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
		}
	}
}

// daring is what a plan ventures.
type daring struct {
	held     int64 // bytes, what is placed on devices counted
	weights  int64 // of it, weights
	device   bool  // the plan uses a device, for layers or for a prefill
	resident bool
}

func daringOf(p Plan) daring {
	d := daring{resident: p.Outcome == Resident,
		device: p.Params.Text("prefill-device") != "" && !p.Params.Pinned("prefill-device") || p.Params.Text("n-gpu-layers") != "0" && !p.Params.Pinned("n-gpu-layers")}
	for _, r := range p.Ledger.Rows {
		switch r.Name {
		case RowSlots:
			if r.Kind != InTurn {
				d.held += r.Bytes
			}
		case "model": // all of it, resident
			d.weights += r.Bytes
			d.held += r.Bytes
		case RowDense, RowCache:
			if r.Kind != Room && !r.ByHand {
				d.weights += r.Bytes
				d.held += r.Bytes
			}
		default:
			d.held += r.Bytes
		}
	}
	d.held += p.Figures.Placed
	d.weights += p.Figures.Placed
	return d
}

// exceptions are where the specification makes a plan more daring without a fact, each with its section.
var exceptions = map[string]string{
	".Memory.Pressure":    "'The facts': a fatal limit widens the margin; 'Where a rule is still cruder': an unprofiled machine is asked for no air",
	".Memory.LockInPlace": "'The memory ledger': an unmeasured lock ceiling sizes the cache to what can be held",
	".Memory.ExemptTotal": "'The memory ledger': the same, of the total both locks share",
	".Memory.Keepable":    "'The headroom probe': without the measurement every rule falls back to what is reported, which may be more",
}

// Removing a fact never makes the plan more daring.
func TestLessKnownIsNoMoreDaring(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		known := Make(in)
		full := daringOf(known)
		var paths []string
		facts(reflect.ValueOf(&in.Machine).Elem(), "", func(path string, _ reflect.Value) { paths = append(paths, path) })
		paths = append(paths, ".Storage.Curve")
		gone := rapid.SampledFrom(paths).Draw(t, "fact")
		pressure, _ := in.Machine.Memory.Pressure.Get()
		if _, excepted := exceptions[gone]; excepted && (gone != ".Memory.Pressure" || pressure != machine.Swaps) { // swapping is no exception
			return
		}
		if gone == ".Memory.Available" && in.Params.Pinned("memory") {
			return // what a person allows is then all there is to go by, and no fact
		}
		if gone == ".Storage.Curve" {
			in.Machine.Storage.Curve = nil
		}
		facts(reflect.ValueOf(&in.Machine).Elem(), "", func(path string, fact reflect.Value) {
			if path == gone {
				fact.SetZero()
			}
		})
		unknown := Make(in)
		less := daringOf(unknown)
		defer logged(t, known, unknown)
		assert.False(t, less.held > full.held && less.weights > full.weights, "without %s it holds %s, of it weights %s; with it %s and %s", gone, size(less.held), size(less.weights), size(full.held), size(full.weights))
		assert.False(t, less.resident && !full.resident, "without %s streaming is dropped", gone)
		assert.False(t, less.device && !full.device, "without %s a device is used", gone)
	})
}

// The exceptions are real: each is shown once.
func TestExceptions(t *testing.T) {
	t.Parallel()
	hold := func(m machine.Profile) int64 {
		return daringOf(Make(Input{Machine: m, Model: qwen.profile(t), Params: request(t), Policy: DefaultPolicy(), Session: able})).held
	}
	killed := with(desktop(gib(32), gib(12)), func(m *machine.Profile) { m.Memory.Pressure = machine.Known(machine.Kills, probed) })
	assert.Greater(t, hold(with(killed, func(m *machine.Profile) { m.Memory.Pressure = machine.Unknown[machine.Pressure]("") })), hold(killed))
	locked := laptop(gib(10), gib(4))
	assert.Greater(t, hold(with(locked, func(m *machine.Profile) {
		m.Memory.LockInPlace, m.Memory.ExemptTotal = machine.Unknown[int64](""), machine.Unknown[int64]("")
	})), hold(locked))
	kept := with(phone(gib(6)), func(m *machine.Profile) { m.Memory.Keepable = machine.Known(gib(4), probed) })
	assert.Greater(t, hold(with(kept, func(m *machine.Profile) { m.Memory.Keepable = machine.Unknown[int64]("") })), hold(kept))
	airless := phone(gib(9))
	on := func(m machine.Profile) Outcome {
		return Make(Input{Machine: m, Model: small.profile(t), Params: request(t), Policy: DefaultPolicy(), Session: able}).Outcome
	}
	assert.Equal(t, Streams, on(airless))
	assert.Equal(t, Resident, on(with(airless, func(m *machine.Profile) { m.Memory.Pressure = machine.Unknown[machine.Pressure]("") })))
}

// number finds a figure in a text with its unit.
var number = regexp.MustCompile(`\d+(?:\.\d+)?(?:e[-+]\d+)?(?: (?:TiB/s|GiB/s|MiB/s|KiB/s|TiB|GiB|MiB|KiB|B/s|B|tok/s|GHz|ms|µs|s\b)|%|x\b)?`)

// renderings are all the ways a number may be written.
func renderings(v float64, into map[string]bool) {
	for _, text := range []string{size(int64(v)), speed(v), took(v), percent(v), times(v), spread(v), nmse(v), ghz(int64(v)), pace(v)} {
		into[text] = true
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e9 {
		into[fmt.Sprintf("%d", int64(v))] = true
	}
	if v > 0 {
		into[pace(1/v)] = true
	}
}

// collect renders every number in a value, facts included.
func collect(v reflect.Value, into map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collect(v.Elem(), into)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			collect(v.Field(i), into)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			collect(v.Index(i), into)
		}
		renderings(float64(v.Len()), into)
	case reflect.Map:
		for _, key := range v.MapKeys() {
			collect(v.MapIndex(key), into)
		}
	case reflect.Int, reflect.Int64:
		renderings(float64(v.Int()), into)
	case reflect.Float64:
		renderings(v.Float(), into)
	case reflect.String:
		for _, text := range number.FindAllString(v.String(), -1) {
			into[text] = true
		}
	}
}

// No reason cites a number that is not in its inputs: the facts, the policy, what was typed, or the plan's own arithmetic.
func TestReasonsCiteTheirInputs(t *testing.T) {
	t.Parallel()
	check := func(t require.TestingT, in Input) {
		p := Make(in)
		allowed := map[string]bool{"0": true}
		for _, v := range []any{in.Machine, in.Placement, in.History, in.Policy, p.Ledger, p.Lanes, p.Candidates, p.Prediction, p.Figures} {
			collect(reflect.ValueOf(v), allowed)
		}
		renderings(1+in.Policy.FitsAir, allowed)
		collect(reflect.ValueOf([]int{in.Model.Context, in.Model.Layers}), allowed)
		if n := in.Machine.Backends; true {
			renderings(float64(n.Linked.Or(0)+n.Loaded.Or(0)), allowed)
		}
		for _, row := range params.All() {
			collect(reflect.ValueOf(p.Params.Text(row.Name)), allowed)
		}
		for _, d := range p.Decisions {
			for _, text := range []string{d.Reason, d.Brief} {
				for _, d := range in.Machine.Devices {
					text = strings.ReplaceAll(text, d.Name, "")
				}
				text = strings.ReplaceAll(text, "32-bit", "")
				for _, found := range number.FindAllString(text, -1) {
					if !allowed[found] {
						t.Errorf("%s cites %q: %s", d.Knob, found, text)
					}
				}
			}
		}
	}
	for _, e := range catalogue {
		check(t, e.input(t))
	}
	rapid.Check(t, func(t *rapid.T) { check(t, anyInput(t)) })
}

// topics a plan may speak of that no parameter stands for.
var topics = []string{"budget", "overcommitted", "regime", "placement", "placement-declined", "device-rates", "shared-memory", "device-host-pointer", "device-crossing",
	"device-unapplied", "device-excluded", "unmeasured-compute", "unmeasured-refault", "unmeasured-storage", "extra-offload", "dense-pin", "ledger",
	"cache-floor", "cache-off", "cache-lock", "cache-unpriced", "declined", "storage-rate", "storage-spread", "mapping", "lossy", "prediction", "unpredicted"}

// Every decision says itself twice: in full, and in one sentence for a person with no flag names and none of the
// specification's vocabulary.
func TestDecisionsSpeakTwice(t *testing.T) {
	t.Parallel()
	jargon := regexp.MustCompile(`(?i)--|\b(prefill|decode|ubatch|token cycle|ledger|lanes?|slots?|refault|residual|mmap|nmse|policy|dense|KV|GEMV)\b`)
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)*$`)
	flags := regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	check := func(t require.TestingT, in Input) {
		for _, d := range Make(in).Decisions {
			assert.Regexp(t, kebab, d.Knob)
			_, isParam := params.Lookup(d.Knob)
			assert.True(t, isParam || slices.Contains(topics, d.Knob) || d.Knob == "prefill-device", d.Knob)
			assert.Contains(t, []Source{Measured, Derived, FromPolicy, Operator, Unprobed}, d.Source, d.Knob)
			assert.NotEmpty(t, d.Value, d.Knob)
			assert.NotEmpty(t, d.Reason, d.Knob)
			assert.NotEmpty(t, d.Brief, d.Knob)
			assert.NotRegexp(t, jargon, d.Brief, d.Knob)
			assert.NotContains(t, d.Brief+d.Reason, "%!", d.Knob)
			assert.NotRegexp(t, `[.;:]$`, d.Brief, d.Knob)
			for _, f := range flags.FindAllString(d.Reason, -1) {
				name := strings.TrimPrefix(f, "--")
				_, ok := params.Lookup(name)
				assert.True(t, ok, "%s advises %s", d.Knob, f)
			}
		}
	}
	for _, e := range catalogue {
		check(t, e.input(t))
	}
	rapid.Check(t, func(t *rapid.T) { check(t, anyInput(t)) })
}
