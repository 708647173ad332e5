package gates

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

type pair struct{ i, a, j, b int }

// pairwise is a list of rows that holds every pair of values of any two factors, found greedily.
func pairwise(factors [][]any) [][]any {
	open := map[pair]bool{}
	for i := range factors {
		for j := i + 1; j < len(factors); j++ {
			for a := range factors[i] {
				for b := range factors[j] {
					open[pair{i, a, j, b}] = true
				}
			}
		}
	}
	var rows [][]any
	for len(open) > 0 {
		row := make([]int, len(factors))
		for i := range factors {
			most := -1
			for a := range factors[i] {
				// What the value adds with the factors set before it, and could add with those after.
				n := 0
				for j := range factors {
					switch {
					case j < i && open[pair{j, row[j], i, a}]:
						n += 100
					case j > i:
						for b := range factors[j] {
							if open[pair{i, a, j, b}] {
								n++
							}
						}
					}
				}
				if n > most {
					most, row[i] = n, a
				}
			}
		}
		values := make([]any, len(factors))
		for i := range factors {
			values[i] = factors[i][row[i]]
			for j := range i {
				delete(open, pair{j, row[j], i, row[i]})
			}
		}
		rows = append(rows, values)
		if len(rows) > 1000 {
			panic("the cover does not close")
		}
	}
	return rows
}

func TestPairwiseHoldsEveryPair(t *testing.T) {
	rows := pairwise(factors)
	t.Logf("%d rows", len(rows))
	assert.Less(t, len(rows), 3*len(factors[0])*len(factors[1]))
	for i := range factors {
		for j := i + 1; j < len(factors); j++ {
			for _, a := range factors[i] {
				for _, b := range factors[j] {
					found := false
					for _, row := range rows {
						found = found || row[i] == a && row[j] == b
					}
					assert.True(t, found, "%v with %v", a, b)
				}
			}
		}
	}
}
