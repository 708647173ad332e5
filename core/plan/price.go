package plan

import (
	"github.com/bmoe/bmoe/core/machine"
)

// price is a rate in bytes per second, or the measurement that is missing.
type price struct {
	rate    float64
	missing string
}

// term is seconds per token, or the measurement that is missing.
type term struct {
	seconds float64
	missing string
}

func missing(known bool, what string) string {
	if known {
		return ""
	}
	return what
}

// of is what sweeping bytes at the rate takes. Nothing takes no time, whatever the rate.
func (p price) of(bytes float64) term {
	if bytes == 0 {
		return term{}
	}
	if p.missing != "" {
		return term{missing: p.missing}
	}
	return term{seconds: bytes / p.rate}
}

func (t term) plus(u term) term {
	sum := term{t.seconds + u.seconds, t.missing}
	if sum.missing == "" {
		sum.missing = u.missing
	}
	if sum.missing != "" {
		sum.seconds = 0
	}
	return sum
}

func minus(t, u term) term { u.seconds = -u.seconds; return t.plus(u) }

func (t term) times(factor float64) term { t.seconds *= factor; return t }

// hostRate is what the cores sweep, one token wide.
func (s *state) hostRate() price {
	f := s.machine.Cores.ReadRate
	return price{f.Or(0), missing(f.Known(), "the host's one-token matmul")}
}

// driveRate is what the drive reads slices at, with the lanes the run has.
func (s *state) driveRate() price {
	c := s.curve()
	return price{c.rate, missing(c.known, "the drive's read rate")}
}

// refaultRate is what pages that pressure dropped from a mapping are read again at, scattered and one at a time.
func (s *state) refaultRate() price {
	f := s.machine.Storage.Refault
	return price{f.Or(0), missing(f.Known(), "the rate of scattered page reads")}
}

// deviceLane is a group of dense weights on a device, crossings included. Only a device that gave the host's answer has
// a price.
func (s *state) deviceLane(d machine.Device, bytes float64) []term {
	wrong, compared := d.ReadError.Get()
	switch {
	case !machine.IsYes(d.Usable):
		return []term{{missing: "a device that survives being used"}}
	case !compared:
		return []term{{missing: "its answer compared with the host's"}}
	case !(wrong <= s.policy.ErrorBound):
		return []term{{missing: "an answer that is the host's"}}
	}
	crossing, priced := d.Crossing.Get()
	return []term{
		price{d.ReadRate.Or(0), missing(d.ReadRate.Known(), "its one-token matmul")}.of(bytes),
		{float64(s.policy.CrossingsPlaced*s.Model.Layers) * crossing, missing(priced, "the price of a graph crossing")},
	}
}
