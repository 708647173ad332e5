package plan

import (
	"regexp"
	"strings"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/model"
)

// Placement is what a capacity fitter answered: which layers go to devices, and what the placed model reserves. The zero
// Placement is one nobody asked for.
type Placement struct {
	Projection Projection    `json:"projection"` // with every layer on the host
	Placed     Projection    `json:"placed"`     // with the layers below on devices; none: as with every layer on the host
	Layers     int           `json:"layers"`     // on devices, counted from the last; the output head is one more
	Overrides  []Override    `json:"overrides"`  // the first that matches decides
	Devices    []DeviceShare `json:"devices"`    // that were given bytes, in order
}

// Override sends the tensors whose name matches to a buffer: a device's, by its name, or else the host's.
type Override struct {
	Pattern string `json:"pattern"`
	Where   string `json:"where"`
}

// DeviceShare is what a device was given.
type DeviceShare struct {
	Name   string `json:"name"`
	Layers int    `json:"layers"`
	Bytes  int64  `json:"bytes"`
}

// placement takes the projected placement, if it can be trusted, and settles whether experts stream.
func placement(s *state) {
	switch refusal := s.refusal(); {
	case s.placedByHand():
		s.place(int(s.set.Int("n-gpu-layers")), parseOverrides(s.set.Text("override-tensor")))
		s.note("placement", size(s.share.placed), Operator, "the layers on devices were set by hand",
			size(s.share.placed)+" of the model is on devices, as you set it")
	case len(s.Placement.Devices) == 0:
		s.noPlacement()
	case !s.Session.PlacesLayers:
		s.note("placement-declined", size(s.givenBytes()), Derived,
			size(s.givenBytes())+" were projected onto devices and none is placed: this session loads layers onto the host alone",
			"Nothing is placed on devices, though "+size(s.givenBytes())+" would fit there")
	case refusal != "":
		s.note("placement-declined", size(s.givenBytes()), Derived,
			size(s.givenBytes())+" were projected onto devices and none is placed: "+refusal,
			"Nothing is placed on devices: "+size(s.givenBytes())+" there would be counted twice")
	default:
		s.apply()
	}
	s.shareFigures()
	s.settle()
}

// applies says whether the placement is the one that is loaded.
func (s *state) applies() bool {
	return !s.placedByHand() && len(s.Placement.Devices) > 0 && s.Session.PlacesLayers && s.refusal() == ""
}

func (s *state) placedByHand() bool {
	return s.byHand("n-gpu-layers") || s.byHand("override-tensor") || s.byHand("device-split")
}

func (s *state) givenBytes() int64 {
	var n int64
	for _, d := range s.Placement.Devices {
		n += d.Bytes
	}
	return n
}

// refusal is why the placement is not applied, or "". Every device that was given bytes must be known to have memory of its
// own and state its size; where one draws on the host's, the fitter counted one pool twice.
func (s *state) refusal() string {
	for _, given := range s.Placement.Devices {
		d, listed := s.machine.Device(given.Name)
		total, sized := d.Total.Get()
		switch {
		case !listed:
			return "device " + given.Name + " is not one this machine lists"
		case machine.IsNo(d.Usable):
			return "device " + d.Name + " is unusable" + from(d.Usable.From())
		case !d.Usable.Known():
			return "nobody tried whether device " + d.Name + " can be used at all" + from(d.Usable.From())
		case machine.IsYes(d.SharesHost):
			return "device " + d.Name + " draws on the host's memory" + from(d.SharesHost.From())
		case !d.SharesHost.Known():
			return "whose memory device " + d.Name + " uses was not measured" + from(d.SharesHost.From())
		case !sized || total == 0:
			return "device " + d.Name + " claims memory of its own and does not say how much"
		}
	}
	return ""
}

func (s *state) noPlacement() {
	b := s.machine.Backends
	linked, loaded := b.Linked.Or(0), b.Loaded.Or(0)
	switch {
	case len(s.machine.Devices) > 0:
		s.note("placement", "-", Unprobed, "no placement was projected: every layer is the host's",
			"All layers are computed by the processor")
	case !b.Linked.Known() || !b.Loaded.Known():
		s.note("placement", "-", Unprobed, "nobody looked for accelerators"+from(b.Loaded.From()),
			"Nobody looked for a device to help")
	case linked+loaded == 0:
		s.note("placement", "-", Measured, "this build carries no backend for an accelerator: 0 linked, 0 found beside it",
			"This build cannot use any device: it has 0 modules for one")
	default:
		s.note("placement", "-", Measured, "no accelerator here: "+count(linked)+" backends in the build and "+count(loaded)+
			" beside it found none", "No device to help was found on this machine by "+count(linked+loaded)+" modules")
	}
}

// apply puts the placement into the run. A layer's experts are never on both sides, since they are served as a set: a
// pattern that leaves part of them on the host brings the rest along.
func (s *state) apply() {
	overrides := s.wholeLayers(s.Placement.Layers, s.Placement.Overrides)
	s.place(s.Placement.Layers, overrides)
	var split []string
	for _, d := range s.Placement.Devices {
		split = append(split, d.Name+"="+count(d.Layers))
	}
	where := strings.Join(split, ",")
	placed := size(s.share.placed)
	s.decide("n-gpu-layers", text(s.Placement.Layers), Derived, "as projected to fit: "+placed+" of weights leave the host",
		placed+" of the model is held and computed by devices")
	s.decide("device-split", where, Derived, "each device takes the layers its share was sized for, not a division by free memory",
		"The devices take layers as "+where)
	if len(overrides) > 0 {
		s.decide("override-tensor", formatOverrides(overrides), Derived,
			"as projected, with every layer's experts on one side", "Experts of "+count(s.share.layers)+" layers stay in main memory")
	}
}

// place computes what is left to the host.
func (s *state) place(layers int, overrides []Override) {
	on := s.sides(layers, overrides)
	s.share = hostShare(s.Model, s.width(), func(t model.Tensor) bool { return !on(t) })
}

// sides tells of a tensor whether it is on a device. The token embedding is a table and stays on the host.
func (s *state) sides(layers int, overrides []Override) func(model.Tensor) bool {
	type rule struct {
		pattern *regexp.Regexp
		device  bool
	}
	var rules []rule
	for _, o := range overrides {
		if pattern, err := regexp.Compile(o.Pattern); err == nil {
			rules = append(rules, rule{pattern, s.isDevice(o.Where)})
		}
	}
	all := s.Model.Layers + s.Model.MTPLayers
	first := max(0, all+1-layers)
	return func(t model.Tensor) bool {
		for _, r := range rules {
			if r.pattern.MatchString(t.Name) {
				return r.device
			}
		}
		switch {
		case layers <= 0 || s.Model.Shape(t) == model.Rows:
			return false
		case t.Layer >= 0:
			return t.Layer >= first
		}
		return layers > all && !(s.Model.TiedHead() && t.Name == "token_embd.weight")
	}
}

func (s *state) isDevice(where string) bool {
	for _, d := range s.machine.Devices {
		if strings.HasPrefix(where, d.Name) {
			return true
		}
	}
	return false
}

// wholeLayers puts before the overrides one for every layer whose experts they leave on both sides.
func (s *state) wholeLayers(layers int, overrides []Override) []Override {
	on := s.sides(layers, overrides)
	sides := map[int][2]bool{}
	for t := range s.Model.Experts() {
		side := sides[t.Layer]
		if on(t) {
			side[1] = true
		} else {
			side[0] = true
		}
		sides[t.Layer] = side
	}
	host := "CPU" // as every build calls it
	for _, o := range overrides {
		if !s.isDevice(o.Where) {
			host = o.Where
			break
		}
	}
	var whole []Override
	for layer := range s.Model.Layers {
		if sides[layer] == [2]bool{true, true} {
			whole = append(whole, Override{model.ExpertPattern(layer), host})
		}
	}
	return append(whole, overrides...)
}

func formatOverrides(overrides []Override) string {
	var words []string
	for _, o := range overrides {
		words = append(words, o.Pattern+"="+o.Where)
	}
	return strings.Join(words, ",")
}

// parseOverrides is its inverse. What is no override is left out; the session refuses it by name.
func parseOverrides(text string) []Override {
	var overrides []Override
	for word := range strings.SplitSeq(text, ",") {
		if i := strings.LastIndexByte(word, '='); i > 0 {
			overrides = append(overrides, Override{word[:i], word[i+1:]})
		}
	}
	return overrides
}

// settle decides whether experts stream. The plan that streams nothing is taken wherever residency is to be had.
func (s *state) settle() {
	knob, f := "moe-stream", &s.plan.Figures
	class := s.classify()
	switch {
	case s.Model.ExpertBytes() == 0:
		s.resident(NoExperts, Derived, "the model has no experts: there is nothing to stream",
			"This model has no experts to stream: it has "+size(f.Dense)+" that every token needs")
	case s.share.experts == 0:
		s.resident(OnDevices, Derived, "every layer's experts are on a device: nothing is left to stream",
			"All experts are on devices, "+size(f.Placed)+" with the rest: nothing needs streaming")
	case class == Fits && !s.airless():
		s.resident(Resident, Derived, "what the host holds, "+size(f.Need)+", fits in "+size(f.Usable)+
			": reading experts from storage would only add reads that resident weights do not need",
			"Nothing is streamed: "+size(f.Need)+" fits in memory")
	case class == Fits:
		s.stream(FromPolicy, size(f.Need)+" would fit in "+size(f.Usable)+" and not be left alone: pressure compresses here, so a resident "+
			"model needs "+times(1+s.policy.FitsAir)+" its size (policy), "+size(f.NeedAir),
			"The model would just fit in "+size(f.Usable)+" and be taken back piece by piece: its experts are streamed")
	case class == UnknownRegime:
		s.stream(Unprobed, "what may be held was not measured, and streaming holds least",
			"Experts are streamed, as nothing says that the model fits")
	default:
		s.stream(Derived, size(f.Need)+" does not fit in "+size(f.Usable)+": the experts are read from storage as they are routed to",
			"Experts are read from storage when they are needed: "+size(f.Need)+" do not fit in "+size(f.Usable))
	}
	if !s.byHand(knob) {
		return
	}
	// A person's word stands, where there is anything to stream.
	s.streams = s.set.Bool(knob) && s.share.experts > 0
	switch {
	case s.streams:
		s.plan.Outcome = Streams
	case s.share.experts > 0:
		s.plan.Outcome = ByHand
	}
}

func (s *state) resident(outcome Outcome, source Source, reason, brief string) {
	s.plan.Outcome = outcome
	s.decide("moe-stream", "off", source, reason, brief)
}

func (s *state) stream(source Source, reason, brief string) {
	s.plan.Outcome, s.streams = Streams, true
	s.decide("moe-stream", "on", source, reason, brief)
}
