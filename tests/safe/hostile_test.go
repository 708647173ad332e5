//go:build unix

package safe

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	seed   = flag.Uint64("hostile.seed", 1, "seed of the first damaged header")
	copies = flag.Int("hostile.n", 200, "how many headers to damage")
)

// Headers with damage, as a bad download or a hostile sender makes them, are refused or run; they end neither the program
// nor the person's patience. Damage number n of a seed is always the same: -hostile.seed and -hostile.n repeat it.
func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	presets := []string{moe, "gpt-oss-20m", "deepseek2-20m", "glm4moe-20m"}
	for _, name := range presets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := model(t, name)[0]
			head := header(t, whole)
			path := copied(t, whole, filepath.Join(t.TempDir(), "hostile.gguf"), -1)
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			defer file.Close()
			ran := 0
			for n := range *copies / len(presets) {
				damaged, what := damage(rand.New(rand.NewPCG(*seed, uint64(n))), head)
				_, err := file.WriteAt(damaged, 0)
				require.NoError(t, err)
				o := run(t, "-m", path, "-p", "a", "-n", "1", "-c", "64", "-t", "1", "--moe-stream")
				ok := assert.NotRegexp(t, crash, o.stderr) && assert.Contains(t, []int{done, failed, badInput}, o.code, o.state)
				if o.code != done {
					ok = assert.Len(t, complaints(o.stderr), 1, o.stderr) && ok
				} else {
					ran++
				}
				if !ok {
					t.Errorf("%s, seed %d, damage %d: %s; %s; it said:\n%s", name, *seed, n, what, o.state, o.stderr)
					if keep := os.Getenv("BMOE_KEEP_HOSTILE"); keep != "" {
						copied(t, path, filepath.Join(keep, fmt.Sprintf("%s-%d-%d.gguf", name, *seed, n)), -1)
					}
				}
			}
			t.Logf("%d of %d damaged headers ran", ran, *copies/len(presets))
		})
	}
}

// values are numbers that arithmetic goes wrong with.
var values = []uint64{0, 1, 2, 3, 7, 31, 33, 63, 64, 65, 127, 128, 255, 256, 512, 1023, 1025, 4096, 65535, 65536, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1}

// damage is a copy of a header with something wrong, and what that is.
func damage(r *rand.Rand, head []byte) ([]byte, string) {
	b := bytes.Clone(head)
	if r.IntN(3) == 0 {
		n := 1 + r.IntN(8)
		for range n {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		return b, fmt.Sprintf("%d bits are flipped", n)
	}
	// A key of the architecture, or a tensor, whose name is followed by what it has: a number of it, or all of its type.
	marks := places(b)
	at := marks[r.IntN(len(marks))]
	field := at + 4 // the value of most keys
	if r.IntN(2) == 0 {
		field = at + 4*r.IntN(10)
	}
	v := values[r.IntN(len(values))]
	if r.IntN(2) == 0 {
		copy(b[min(field, len(b)-4):], little(uint32(v)))
	} else {
		copy(b[min(field, len(b)-8):], little(v))
	}
	return b, fmt.Sprintf("%d is put at byte %d, behind %q", v, field, head[max(at-40, 0):at])
}

// places are where the names of the architecture's keys and of the tensors end.
func places(b []byte) []int {
	var found []int
	for i := 8; i < len(b)-64; i++ {
		n := int(b[i-8])
		if n < 5 || n > 63 || !bytes.Equal(b[i-7:i], make([]byte, 7)) {
			continue
		}
		name := b[i : i+n]
		if bytes.Contains(name, []byte(".")) && bytes.IndexFunc(name, func(c rune) bool { return c < '-' || c > 'z' }) < 0 {
			found = append(found, i+n)
		}
	}
	return found
}
