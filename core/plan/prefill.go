package plan

import (
	"strings"

	"github.com/bmoe/bmoe/core/machine"
)

// arming is a device that computes streamed experts while a prompt is read, and what it holds.
type arming struct {
	name   string
	width  int   // tokens of the widest graph beside it
	stays  int64 // bytes for the whole session: a layer's other weights per slot, and its compute buffers
	slot   int64 // bytes of one layer of experts
	slots  int   // 2: a layer is loaded while the one before it is computed. 1: one at a time
	inTurn bool  // the slots are held only during a prefill, the cache giving up as much
	pooled bool  // charged to the host's memory
	wires  bool  // and to what may be held exempt
	byHand bool
}

func (a arming) slotBytes() int64 { return a.slot * int64(a.slots) }

// charge puts the device into the ledger. One with memory of its own costs this pool nothing.
func (a *allocation) charge(d arming) {
	if !d.pooled {
		return
	}
	exempt := func(bytes int64) int64 {
		if d.wires && a.state.wired() {
			return bytes
		}
		return 0
	}
	a.add(Row{Name: RowDevice, Bytes: d.stays, Exempt: exempt(d.stays), From: "largest layer's other weights per slot, and buffers", Kind: Chosen, ByHand: d.byHand})
	kind := Chosen
	if d.inTurn {
		kind = InTurn
	}
	a.add(Row{Name: RowSlots, Bytes: d.slotBytes(), Exempt: exempt(d.slotBytes()), From: "largest layer's experts per slot", Kind: kind, ByHand: d.byHand})
}

// armPrefill chooses the device that computes streamed experts at prefill. It must have been measured wide, have given the
// host's answer there, win by the margin, and fit the ledger without taking from decode what decode had.
func (s *state) armPrefill() {
	if s.byHand("prefill-device") {
		s.decide("prefill-device", s.set.Text("prefill-device"), Operator, "", "")
	} else {
		s.armFastest()
	}
	s.sayExtraOffload()
}

// armFastest tries the contenders, each with two slots and then with one.
func (s *state) armFastest() {
	var refusals []string
	refuse := func(name, why string) { refusals = append(refusals, name+": "+why) }
	s.refuseSlower(refuse)
	if why := s.noPrefillDevice(); why != "" {
		refuse("every device", why)
	} else {
		for _, c := range s.contenders {
			armed, why := s.tryContender(c)
			if armed {
				s.sayArmed(c, refusals)
				return
			}
			refuse(c.device.Name, why)
		}
	}
	reason := "streamed experts are computed by the host at prefill: "
	switch {
	case len(s.machine.Devices) == 0:
		looked := s.machine.Backends.Linked.Known() && s.machine.Backends.Loaded.Known()
		s.note("prefill-device", "none", sourceOf(looked), reason+"this run lists no device", "Prompts are read by the processor")
	case len(refusals) == 0:
		s.note("prefill-device", "none", Unprobed, reason+"no device was compared with it", "Prompts are read by the processor")
	default:
		s.note("prefill-device", "none", Derived, reason+strings.Join(refusals, "; "), s.refusedBrief(refusals))
	}
}

func (s *state) refusedBrief(refusals []string) string {
	if len(s.contenders) > 0 && s.noPrefillDevice() == "" {
		f := s.deviceFigures(s.contenders[0].device.Name)
		return "Prompts are read by the processor: " + s.contenders[0].device.Name + ", " + times(f.Gain) + " as fast, does not fit beside what answers need"
	}
	return "Prompts are read by the processor"
}

// refuseSlower gives the reason of every device that is no contender.
func (s *state) refuseSlower(refuse func(name, why string)) {
	host, hostKnown := s.machine.Cores.WideRate.Get()
	for _, d := range s.machine.Devices {
		switch why := wideRefusal(d, s.policy); {
		case why != "":
			refuse(d.Name, why)
		case !hostKnown:
			refuse(d.Name, "the host was not measured "+count(s.policy.DeviceWidth)+" tokens wide")
		case d.WideRate.Or(0) < host*(1+s.policy.DeviceWin):
			refuse(d.Name, "it computes "+known(d.WideRate)+" against the host's "+speed(host)+", which does not win by "+percent(s.policy.DeviceWin)+" (policy)")
		}
	}
}

// noPrefillDevice is what in the run cannot share a session with a device prefill, or "".
func (s *state) noPrefillDevice() string {
	least := int(s.set.Int("prefill-min-tokens"))
	switch {
	case !s.Session.PrefillDevice:
		return "this session computes prompts on the host alone"
	case !s.budget.known:
		return "what may be held was not measured"
	case s.share.placed > 0:
		return "layers are placed on devices, and a prefill device is the only one its run may have"
	case s.plan.Figures.Width < least:
		return "no graph is as wide as the " + count(least) + " tokens it is given at least"
	}
	return ""
}

// armingOf is what a contender would hold.
func (s *state) armingOf(d machine.Device, slots int) arming {
	largest := s.Model.LargestLayer()
	onDemand := true
	if s.byHand("prefill-slots-on-demand") {
		onDemand = s.set.Bool("prefill-slots-on-demand")
	}
	width := s.plan.Figures.Width
	if pooled(d) && s.widthRuled() {
		width = s.narrowed(d.Name)
	}
	return arming{
		name: d.Name, width: width,
		stays: largest.Other*int64(slots) + s.deviceCompute(d.Name, width),
		slot:  largest.Experts, slots: slots, inTurn: onDemand && pooled(d),
		pooled: pooled(d), wires: !machine.IsNo(d.Wires),
	}
}

// tryContender arms a device if it fits. With the slots in turn with the cache they fit if the cache can yield as much, or
// if what is left over still fits both ceilings.
func (s *state) tryContender(c contender) (armed bool, why string) {
	counts := []int{2, 1}
	if s.byHand("prefill-slots") {
		counts = []int{int(s.set.Int("prefill-slots"))}
	}
	f := s.deviceFigures(c.device.Name)
	for _, slots := range counts {
		d := s.armingOf(c.device, slots)
		f.Stays, f.Slots, f.TwoSlots, f.Needs = d.stays, d.slot, d.slotBytes(), d.stays+d.slotBytes()
		if !d.pooled {
			if why = s.fitsOwn(c.device, d); why == "" {
				s.prefill = &d
				return true, ""
			}
			continue
		}
		alone := s.plan.Figures.Width
		s.useWidth(d.width)
		with := allocate(s, &d)
		f.Cache = with.cache
		if why = s.fitsBeside(with, d); why == "" {
			s.prefill, s.allocation = &d, with
			if s.widthRuled() {
				s.sayWidth(d.width, d.name)
			}
			return true, ""
		}
		s.useWidth(alone)
	}
	return false, why
}

// fitsOwn checks a device against its own free memory.
func (s *state) fitsOwn(device machine.Device, d arming) string {
	if needs, free := d.stays+d.slotBytes(), device.Free.Or(0); needs > free {
		return "it needs " + size(needs) + " with " + slotsOf(d.slots) + " and has " + size(free) + " free"
	}
	return ""
}

// fitsBeside checks a device that is charged to this pool: decode pays on every token, so the dense set and the cache must
// keep the protection they had, and the cache a token cycle.
func (s *state) fitsBeside(with allocation, d arming) string {
	holds := "with " + slotsOf(d.slots) + " it holds " + size(d.stays) + " for the session and " + size(d.slotBytes()) + " for experts"
	free := max(0, with.left)
	if s.wired() && d.wires {
		free = max(0, min(free, with.exemptLeft))
	}
	switch without := &s.allocation; {
	case without.denseHeld && !with.denseHeld:
		return holds + ", and the dense set of " + size(s.share.dense()) + " would lose its place"
	case with.left < 0:
		return holds + ", more than what may be held beside the rest"
	case s.wired() && d.wires && with.exemptLeft < 0:
		return holds + ", more than what may be held exempt from reclaim beside the rest"
	case with.cache < with.floor():
		return holds + ", and the cache would fall under one token cycle of " + size(s.share.cycle)
	case with.lock != without.lock:
		return holds + ", and the cache would lose its lock"
	case d.inTurn && d.slotBytes() > with.cache && d.slotBytes() > free:
		return holds + ", more than the cache's " + size(with.cache) + " can yield in turn"
	}
	return ""
}

func slotsOf(n int) string {
	if n == 1 {
		return "one slot"
	}
	return "two slots"
}

func (s *state) sayArmed(c contender, refusals []string) {
	d, host := s.prefill, s.machine.Cores.WideRate.Or(0)
	where := "out of its own " + size(c.device.Free.Or(0)) + " free"
	if d.pooled {
		where = "out of this pool"
	}
	s.decide("prefill-device", d.name, Measured, because(
		"it computes "+speed(c.device.WideRate.Or(0))+" "+count(s.policy.DeviceWidth)+" tokens wide against the host's "+speed(host)+", "+times(c.gain)+", with the host's answer (an error of "+
			nmse(c.device.WideError.Or(0))+")",
		"it holds "+size(d.stays)+" for the session and "+size(d.slotBytes())+" of experts, "+where,
		"no weight is approximated, but its arithmetic is its own and a near tie may pick another word: "+typed("prefill-device")+" '' keeps prompts on the host",
		strings.Join(refusals, "; ")),
		"Prompts are read by "+d.name+", which computes them "+times(c.gain)+" as fast as the processor")
	one := ""
	if d.slots == 1 {
		one = ", since two do not fit"
	}
	s.decide("prefill-slots", count(d.slots), Derived, slotsOf(d.slots)+" of "+size(d.slot)+one, prefillSlotsBrief(*d))
	if d.inTurn {
		s.decide("prefill-slots-on-demand", "on", Derived, size(d.slotBytes())+" of slots are held only while a prompt is read, and the cache of "+
			size(s.allocation.cache)+" gives up as much: the two are never busy at once",
			size(d.slotBytes())+" are borrowed from the cache while a prompt is read")
	} else {
		s.decide("prefill-slots-on-demand", "off", Derived, "the slots take nothing from the cache that it could use in turn: "+size(d.slotBytes())+" "+where,
			d.name+" keeps its "+size(d.slotBytes())+" between prompts")
	}
	s.decide("prefill-best-effort", "on", Derived, "the plan chose the device and nobody asked for it: if it cannot be set up the prompt is read by the host",
		"If "+d.name+" cannot be set up, the processor reads the prompt")
}

func prefillSlotsBrief(d arming) string {
	if d.slots == 1 {
		return d.name + " holds one layer of experts at a time, " + size(d.slot)
	}
	return d.name + " computes one layer of experts while the next is read, " + size(d.slotBytes()) + " together"
}

// armByHand arms the device that a person named, whether or not it fits.
func (s *state) armByHand() {
	name := s.set.String("prefill-device")
	if name == "" {
		return
	}
	device, _ := s.machine.Device(name)
	device.Name = name
	d := s.armingOf(device, int(s.set.Int("prefill-slots")))
	d.byHand, d.inTurn = true, s.set.Bool("prefill-slots-on-demand") && d.pooled
	s.prefill = &d
	if s.widthRuled() && d.pooled {
		s.useWidth(d.width)
		s.sayWidth(d.width, d.name)
	}
}

// sayExtraOffload says which device, if any, computes streamed experts. It is about them only, never about what a placement
// put on devices.
func (s *state) sayExtraOffload() {
	host := known(s.machine.Cores.ReadRate)
	decode := "decode stays on the cores, which read " + host + " one token wide"
	if s.prefill == nil {
		s.note("extra-offload", "none", Derived, "no device computes streamed experts; "+decode, "The processor computes the experts that are read from storage")
		return
	}
	s.note("extra-offload", s.prefill.name, Derived, "device "+s.prefill.name+" computes streamed experts while a prompt is read; "+decode,
		s.prefill.name+" computes the experts while a prompt is read, the processor while it is answered")
}
