//go:build unix

package safe

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file that is cut while its experts are read ends the run, with the file and the place.
func TestFileCutWhileRunning(t *testing.T) {
	t.Parallel()
	whole := model(t, moe)[0]
	for _, mode := range []string{
		"--cache-mb 0",
		"--cache-mb 5",
		"--cache-mb 0 --no-odirect",
		"--cache-mb 0 --no-overlap --io-threads 1",
		"--cache-mb 5 --no-overlap --io-threads 8 --no-odirect",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			path := copied(t, whole, filepath.Join(t.TempDir(), "cut.gguf"), -1)
			c := command(append([]string{"-m", path, "-p", "Hello", "-n", "30000", "-c", "32768", "-ub", "64", "--ignore-eos", "--moe-stream"}, strings.Fields(mode)...)...)
			cut := &onFirst{do: func() error { return os.Truncate(path, 4<<20) }}
			c.Stdout = cut
			o := wait(t, c)
			require.NoError(t, cut.err)
			o.refused(t, failed, "read experts", "cut.gguf at ", "the file ends there now")
			assert.Regexp(t, `(?m)^decode   \d+ tokens`, o.stderr, "what was done is reported")
		})
	}
}

// onFirst does something when the first output comes.
type onFirst struct {
	once sync.Once
	do   func() error
	err  error
}

func (f *onFirst) Write(p []byte) (int, error) {
	f.once.Do(func() { f.err = f.do() })
	return len(p), nil
}
