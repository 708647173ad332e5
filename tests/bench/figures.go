package main

import (
	"fmt"
	"slices"
)

// figure is a value of each round in which it could be measured.
type figure []float64

// median computes a value for each round in which all the named measurements were taken.
func (f found) median(value func(o []*outcome) float64, names ...string) figure {
	rounds := 0
	for _, name := range names {
		rounds = max(rounds, len(f[name]))
	}
	var values figure
	for round := range rounds {
		row := make([]*outcome, 0, len(names))
		for _, name := range names {
			if round < len(f[name]) && f[name][round] != nil {
				row = append(row, f[name][round])
			}
		}
		if len(row) == len(names) {
			values = append(values, value(row))
		}
	}
	return values
}

// middle is the median; 0 if there are no values.
func (v figure) middle() float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// show is the median alone.
func (v figure) show(format string) string {
	if len(v) == 0 {
		return "?"
	}
	return fmt.Sprintf(format, v.middle())
}

// spread is the median with the least and the most.
func (v figure) spread(format string) string {
	if len(v) < 2 {
		return v.show(format)
	}
	return fmt.Sprintf(format+" ("+format+"..."+format+")", v.middle(), slices.Min(v), slices.Max(v))
}
