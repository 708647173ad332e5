package plan

import (
	"cmp"
	"slices"

	"github.com/bmoe/bmoe/core/machine"
)

// contender is a device that passed every test a prefill device must pass but the ledger's.
type contender struct {
	device machine.Device
	gain   float64 // its wide rate over the host's
	pooled bool    // what it holds is charged to the host's memory
}

// contendersOf lists them, fastest first. A prefill multiplies every weight by a whole batch, so it is ranked by the wide
// measurement; the one-token figure says nothing about it.
func contendersOf(m *machine.Profile, p Policy) []contender {
	host, known := m.Cores.WideRate.Get()
	var all []contender
	for _, d := range m.Devices {
		if !known || wideRefusal(d, p) != "" {
			continue
		}
		rate, _ := d.WideRate.Get()
		if gain := rate / host; gain >= 1+p.DeviceWin {
			all = append(all, contender{d, gain, pooled(d)})
		}
	}
	slices.SortStableFunc(all, func(a, b contender) int { return cmp.Compare(b.gain, a.gain) })
	return all
}

// pooled says whether what a device holds comes out of the host's memory. One that claims memory of its own and gives no
// size cannot be budgeted against, and is charged to the host like one that nobody asked.
func pooled(d machine.Device) bool {
	free, sized := d.Free.Get()
	return !machine.IsNo(d.SharesHost) || !sized || free == 0
}

// wideRefusal is the fact that keeps a device from computing a prefill, or "".
func wideRefusal(d machine.Device, p Policy) string {
	wrong, compared := d.WideError.Get()
	switch {
	case machine.IsNo(d.Usable):
		return "it is unusable" + from(d.Usable.From())
	case !d.Usable.Known():
		return "nobody tried whether it can be used at all" + from(d.Usable.From())
	case !machine.IsYes(d.RunsExperts):
		return "it was not shown to run every expert type of this model" + from(d.RunsExperts.From())
	case !d.WideRate.Known():
		return "it was not measured " + count(p.DeviceWidth) + " tokens wide" + from(d.WideRate.From())
	case !compared:
		return "its answer at that width was not compared with the host's" + from(d.WideError.From())
	case !(wrong <= p.ErrorBound):
		return "its answer at that width is not the host's: an error of " + nmse(wrong) + " where " + nmse(p.ErrorBound) + " is the bound (policy)"
	}
	return ""
}

// acceleratorAxis says of every device what it could do for a run and why it does or does not. Decode stays on the cores:
// no rule moves it, and these are the facts that one would read.
func acceleratorAxis(s *state) {
	for _, d := range s.machine.Devices {
		s.sayRates(d)
		switch {
		case machine.IsNo(d.Usable):
			s.note("device-excluded", d.Name, Measured, "device "+d.Name+" is UNUSABLE and kept out of the run"+from(d.Usable.From()),
				d.Name+" is left out: it failed when it was tried")
			continue
		case s.wrong(d):
			wrong, _ := d.ReadError.Get()
			s.note("device-excluded", d.Name, Measured, "device "+d.Name+" does not give the host's answer one token wide: an error of "+
				nmse(wrong)+" where "+nmse(s.policy.ErrorBound)+" is the bound (policy); its rate is not looked at",
				d.Name+" is left out of decoding: its results are off by "+nmse(wrong))
			continue
		}
		s.sayPool(d)
		s.sayPointer(d)
		s.sayCrossing(d)
	}
	s.keep("threads", s.threadsReason(), s.threadsBrief())
}

func (s *state) wrong(d machine.Device) bool {
	wrong, compared := d.ReadError.Get()
	return compared && !(wrong <= s.policy.ErrorBound)
}

// sayRates prints both measurements of a device beside the host's, so that the decisions can be checked against them.
func (s *state) sayRates(d machine.Device) {
	hostRead, hostWide := s.machine.Cores.ReadRate, s.machine.Cores.WideRate
	f := s.deviceFigures(d.Name)
	if host, ok := hostRead.Get(); ok {
		f.ReadGain = d.ReadRate.Or(0) / host
	}
	if host, ok := hostWide.Get(); ok {
		f.Gain = d.WideRate.Or(0) / host
	}
	s.note("device-rates", d.Name, sourceOf(d.ReadRate.Known() || d.WideRate.Known()),
		"device "+d.Name+" reads "+known(d.ReadRate)+" one token wide and computes "+known(d.WideRate)+" "+count(s.policy.DeviceWidth)+
			" wide; the host "+known(hostRead)+" and "+known(hostWide),
		d.Name+" computes prompts at "+known(d.WideRate)+", the processor at "+known(hostWide))
}

func known(f machine.Fact[float64]) string {
	if rate, ok := f.Get(); ok {
		return speed(rate)
	}
	return "unmeasured"
}

func sourceOf(known bool) Source {
	if known {
		return Measured
	}
	return Unprobed
}

// sayPool says where a device's memory is no addition.
func (s *state) sayPool(d machine.Device) {
	total, sized := d.Total.Get()
	switch {
	case machine.IsYes(d.SharesHost):
		s.note("shared-memory", d.Name, Measured, "device "+d.Name+" draws on the host's memory: moving weights to it frees none"+from(d.SharesHost.From()),
			d.Name+" uses this machine's main memory, so moving the model there frees nothing")
	case machine.IsNo(d.SharesHost) && (!sized || total == 0):
		s.note("shared-memory", d.Name, Derived, "device "+d.Name+" claims memory of its own and gives no size: a pool that cannot be budgeted against is charged to the host",
			d.Name+" does not say how much memory it has, so its use is charged to main memory")
	}
}

// sayPointer reports whether a device could compute out of memory that the run owns. A backend that does not advertise it
// may still do it, so only a yes is evidence.
func (s *state) sayPointer(d machine.Device) {
	if machine.IsYes(d.HostPointer) {
		s.note("device-host-pointer", d.Name, Measured, "device "+d.Name+" can wrap memory of the host's"+from(d.HostPointer.From())+"; no rule uses that yet",
			d.Name+" could work out of main memory, which is not used yet")
		return
	}
	s.note("device-host-pointer", d.Name, Unprobed, "device "+d.Name+" does not advertise that it wraps memory of the host's, which is no evidence that it cannot; it decided nothing"+from(d.HostPointer.From()),
		"Whether "+d.Name+" could work out of main memory is not known")
}

// sayCrossing prices the term that a ratio of bandwidths cannot see. With a layer's halves on two sides the graph crosses
// between them in every layer; while the price of a crossing is not known, no group is placed on a device for its speed.
func (s *state) sayCrossing(d machine.Device) {
	host, hostKnown := s.machine.Cores.ReadRate.Get()
	rate, rateKnown := d.ReadRate.Get()
	_, compared := d.ReadError.Get()
	price, priced := d.Crossing.Get()
	f := s.deviceFigures(d.Name)
	switch {
	case !hostKnown || !rateKnown || !compared:
		s.note("unmeasured-compute", d.Name, Unprobed, "what device "+d.Name+" would save a decode is owed a measurement: the same one-token matmul on it and on the host, with the results compared",
			"Whether "+d.Name+" answers faster than the processor was not measured")
		return
	case rate < host*(1+s.policy.DeviceWin):
		s.note("device-unapplied", d.Name, Measured, "device "+d.Name+" reads "+speed(rate)+" one token wide against the host's "+speed(host)+", "+
			times(f.ReadGain)+": it does not win a decode by "+percent(s.policy.DeviceWin)+" (policy), which stays on the cores",
			"Answers are made by the processor: it reads "+speed(host)+" and "+d.Name+" "+speed(rate))
		return
	case !priced:
		s.note("device-crossing", d.Name, Unprobed, "device "+d.Name+" reads "+times(f.ReadGain)+" the host's rate, and what a crossing of the graph to it takes was not measured: "+
			"no group is placed on it"+from(d.Crossing.From()),
			d.Name+" reads "+times(f.ReadGain)+" as fast, but what handing work over takes was not measured")
		return
	}
	f.Crossings = s.policy.CrossingsPlaced * s.Model.Layers
	f.Crossing = float64(f.Crossings) * price
	moved := float64(s.share.whole.PerToken)
	f.Saved = moved/host - moved/rate
	if f.Saved <= f.Crossing*(1+s.policy.DeviceWin) {
		s.note("device-crossing", d.Name, Measured, "the dense weights on device "+d.Name+" would save "+took(f.Saved)+" per token and cost "+
			count(f.Crossings)+" crossings of "+took(price)+", "+took(f.Crossing)+": decode stays on the cores",
			"Handing work to "+d.Name+" would take "+took(f.Crossing)+" per token and save "+took(f.Saved))
		return
	}
	s.note("device-unapplied", d.Name, Measured, "the dense weights on device "+d.Name+" would save "+took(f.Saved)+" per token for "+
		took(f.Crossing)+" of crossings, and nothing here moves a decode yet: it stays on the cores",
		d.Name+" might save "+took(f.Saved)+" per token, which is not used yet")
}

// threadsReason says why the classes of cores decide nothing. A rule that took the fast ones alone was refuted by a
// measurement: half the threads cost more than the imbalance saved.
func (s *state) threadsReason() string {
	reason := "the count keeps its default: where fewer threads on faster cores pay is owed a sweep on the machine itself"
	classes := ""
	for i, c := range s.machine.Cores.Classes {
		if i > 0 {
			classes += ", "
		}
		classes += count(c.Count)
		if c.Frequency > 0 {
			classes += " at " + ghz(c.Frequency)
		}
	}
	if classes == "" {
		return because("classes of cores unknown", reason)
	}
	return because("cores, fastest first: "+classes, reason)
}

func (s *state) threadsBrief() string {
	if n, ok := s.machine.Cores.Physical.Get(); ok {
		return "One thread for each of the " + count(n) + " cores this program may use"
	}
	return "One thread for each core this program may use"
}
