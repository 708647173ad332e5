package probe

import (
	"github.com/bmoe/bmoe/core/llama"
)

// Here is how this machine is looked at. load opens the llama.cpp libraries beside the executable; what may end a process is
// asked of children, where again starts any.
func Here(load func() (*llama.Library, error), again Again) Instruments {
	return Instruments{
		Machine:   Machine,
		Devices:   Finder{Load: load, Again: again}.Devices,
		Processor: Processor{load}.Rates,
		Placement: Projector{Load: load, Again: again}.Place,
		Drive:     Storage,
		Headroom:  Holder{again}.Headroom,
	}
}
