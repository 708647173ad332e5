package console

import "testing"

// What is counted can end early, run over, or be nothing at all.
func TestABarTakesAnyCount(t *testing.T) {
	t.Parallel()
	for _, total := range []int64{0, 1, 3, 1 << 40} {
		b := Start("step", total, true)
		for _, done := range []int64{0, total / 3, total, total * 2, 1} {
			b.Set(done)
		}
		b.Done()
	}
}
