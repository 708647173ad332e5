package plan

import (
	"fmt"

	"github.com/bmoe/bmoe/core/params"
)

// regime compares the model with what may be held, and decides whether experts stream.
func (p *planner) regime() {
	dense, experts := p.model.DenseBytes(), p.model.ExpertBytes()
	account := fmt.Sprintf("the weights every token needs are %s and the experts %s; context, buffers and program take %s",
		bytes(dense), bytes(experts), bytes(p.fixed()))
	source := Derived
	switch {
	case p.usable == 0:
		p.is, source = Unknown, Unprobed
	case dense+experts+p.fixed() <= p.usable:
		p.is = Fits
	case experts == 0, dense+p.fixed() > p.usable:
		p.is = DenseOversized
	default:
		p.is = ExpertsStream
	}
	p.note("regime", string(p.is), source, map[Regime]string{
		Fits:           fmt.Sprintf("the whole model, %s, fits", bytes(dense+experts)),
		ExpertsStream:  fmt.Sprintf("%s fit and %s of experts do not", bytes(dense), bytes(experts)),
		DenseOversized: fmt.Sprintf("not even the %s that every token needs fit beside %s of context and buffers", bytes(dense), bytes(p.fixed())),
		Unknown:        "whether the model fits is not known",
	}[p.is], fmt.Sprintf("%s; %s may be used", account, bytes(p.usable)))

	switch {
	case experts == 0:
		p.choose("moe-stream", "off", Derived,
			"the model has no experts to stream", "the model has no expert tensors, so there is nothing to stream")
	case p.is == Fits:
		p.choose("moe-stream", "off", Derived,
			"all weights stay in memory, so no token waits for the drive",
			account+": all of it fits, and streaming would only add reads")
	default:
		p.choose("moe-stream", "on", Derived,
			fmt.Sprintf("each token reads its own experts, at most %s", bytes(p.cycle())),
			fmt.Sprintf("%s: that is more than may be held, so experts are read as they are routed to; a token routes to %s of them",
				account, bytes(p.cycle())))
	}
	if p.is != Fits && !p.streams() && experts > 0 {
		p.note("regime", string(p.is), Operator,
			"streaming is off by hand, and the model does not fit: expect it to be slow",
			"streaming is off by hand, and the model does not fit: the system will read mapped weights again and again, a page at a time")
	}
}

// streams says whether experts come from storage in this run.
func (p *planner) streams() bool { return p.set.Bool("moe-stream") && p.model.ExpertBytes() > 0 }

// cycle is the token cycle at the width the run routes with.
func (p *planner) cycle() int64 { return p.model.TokenCycle(int(max(p.set.Int("n-expert-used"), 0))) }

// dense chooses where the weights that every token needs are.
func (p *planner) dense() {
	if !p.streams() {
		return
	}
	size := bytes(p.model.DenseBytes())
	switch p.is {
	case DenseOversized:
		p.choose("dense-weights", "mmap", Derived,
			size+" stay mapped from the file, since they do not fit",
			fmt.Sprintf("%s of weights that every token needs do not fit in %s beside %s of context, buffers and program: they stay mapped and the system keeps what it can",
				size, bytes(p.usable), bytes(p.fixed())))
	case Unknown:
		p.choose("dense-weights", "mmap", Unprobed,
			size+" stay mapped from the file",
			fmt.Sprintf("whether %s can be held is not known, so they stay mapped from the file and nothing is claimed", size))
	default:
		p.choose("dense-weights", "anon", Derived,
			size+" are held in memory, where reading experts does not push them out",
			fmt.Sprintf("%s are read once into memory of this process: a mapping would be dropped first under pressure, and every token reads all of it", size))
	}
}

// cache gives the expert cache what is left, or nothing where that is less than one token needs.
func (p *planner) cache() {
	if !p.streams() {
		return
	}
	cycle := p.cycle()
	left := p.usable - p.fixed()
	if !p.mapped() {
		left -= p.model.DenseBytes()
	}
	whole := (p.model.ExpertBytes() + params.MiB - 1) &^ (params.MiB - 1)
	left = min(max(left, 0), whole) &^ (params.MiB - 1)
	account := fmt.Sprintf("%s less %s of context, buffers and program and %s of dense weights leaves %s; a token routes to %s",
		bytes(p.usable), bytes(p.fixed()), bytes(p.model.DenseBytes()), bytes(left), bytes(cycle))
	if p.pinned("cache-mb") && p.set.Int("cache-mb") > 0 && p.set.Int("cache-mb") < cycle {
		p.note("cache-mb", p.set.Text("cache-mb"), Operator,
			fmt.Sprintf("set by hand, and below the %s of one token: expect no hits", bytes(cycle)),
			"set by hand; a cache below the token cycle evicts what the same token still needs and hits nothing. "+account)
		return
	}
	switch {
	case p.is == Unknown:
		p.choose("cache-mb", "0", Unprobed,
			"experts are not kept, since what may be held is not known",
			"what may be held is not known, so nothing is claimed for a cache; "+params.Flag("cache-mb")+" sets one")
	case p.is == DenseOversized:
		p.choose("cache-mb", "0", Derived,
			"experts are not kept: the weights every token needs have more use of the memory",
			"a byte of weights that every token reads is worth more than a byte of cache, and they do not fit; "+account)
	case !p.kvKnown:
		p.choose("cache-mb", "auto", Unprobed,
			"sized when the context exists, since its memory can't be told from the file",
			"the memory of the context can't be told from the file, so the cache takes what is left once the context exists; "+account)
	case left < cycle:
		p.choose("cache-mb", "0", Derived,
			fmt.Sprintf("experts are not kept: %s are left and one token needs %s", bytes(left), bytes(cycle)),
			"a cache below the token cycle evicts what the same token still needs and hits nothing, so it is off and experts stream through; "+account)
	default:
		p.choose("cache-mb", fmt.Sprint(left/params.MiB), Derived,
			fmt.Sprintf("%s keep %.0f%% of the experts; one token needs %s", bytes(left), 100*float64(left)/float64(whole), bytes(cycle)),
			account)
	}
}

// mapped says whether the dense weights stay in the file's mapping, which the system may drop.
func (p *planner) mapped() bool {
	how := p.set.String("dense-weights")
	return how == "mmap" || how == "warm"
}

// reads settles how experts are read.
func (p *planner) reads() {
	if !p.streams() {
		return
	}
	p.choose("overlap", "on", Policy,
		"what is in memory is computed while the rest is read",
		"experts that are in memory are computed while the missing ones are read, unless a measurement says that this costs more than it saves")
	p.choose("io-threads", "4", Unprobed,
		"4 reads at a time; the drive was not measured",
		"how the drive's rate grows with reads in flight was not measured, so the default stands")
	p.choose("odirect", "on", Unprobed,
		"reads go past the file cache where the drive's file system lets them",
		"tried and checked by reading back when the model is opened; where it is refused reads go through the file cache and the report says so")
}

// routing repeats what a person changed about the model itself.
func (p *planner) routing() {
	if !p.pinned("n-expert-used") {
		return
	}
	p.note("n-expert-used", p.set.Text("n-expert-used"), Operator,
		fmt.Sprintf("set by hand: the answer is not the model's own, which routes to %d", p.model.ExpertUsed),
		fmt.Sprintf("set by hand; the model routes to %d experts, so the answer is not its own. One token now needs %s", p.model.ExpertUsed, bytes(p.cycle())))
}
