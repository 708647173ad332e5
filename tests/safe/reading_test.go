//go:build unix

package safe

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/engine"
	"github.com/bmoe/bmoe/core/experts"
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

// drive is a file on a drive that a test breaks.
type drive struct {
	experts.File
	reads atomic.Int64
	from  int64 // the first read that is broken
	read  func(d *drive, p []byte, off int64) (int, error)

	mended atomic.Bool
}

func (d *drive) ReadAt(p []byte, off int64) (int, error) {
	if d.reads.Add(1) < d.from || d.mended.Load() {
		return d.File.ReadAt(p, off)
	}
	return d.read(d, p, off)
}

func broken(d *drive, _ []byte, off int64) (int, error) {
	return 0, fmt.Errorf("read %s at %d: %w", d.Path(), off, syscall.EIO)
}

// streamed opens the model in this process, over a drive.
func streamed(t *testing.T, d *drive, change func(*engine.Config)) *engine.Session {
	t.Helper()
	c := engine.Config{Model: model(t, moe)[0], Context: 512, Ubatch: 64, Threads: 1, Stream: true, Lanes: 4, Overlap: true, Direct: true}
	if d != nil {
		c.Through = func(f experts.File) experts.File { d.File = f; return d }
	}
	if change != nil {
		change(&c)
	}
	s, err := engine.Open(t.Context(), c)
	require.NoError(t, err)
	return s
}

var request = engine.Request{Prompt: "Hello", Max: 30, IgnoreEOS: true}

// A drive that fails in the middle of a run fails the run, with the file and the place, and harms nothing else: once it
// answers again, the same session does too, and so does the next one in the process, as if nothing had been.
func TestReadError(t *testing.T) {
	answer := func(s *engine.Session) string {
		var text strings.Builder
		_, err := s.Generate(t.Context(), request, func(t engine.Token) error { text.WriteString(t.Text); return nil })
		require.NoError(t, err)
		return text.String()
	}
	counting := &drive{from: 1 << 60}
	s := streamed(t, counting, nil)
	want := answer(s)
	all := counting.reads.Load()
	require.NoError(t, s.Close())
	require.Greater(t, all, int64(500))

	for name, from := range map[string]int64{"at the first read": 1, "in the prefill": 100, "in the decode": all / 2, "near the end": all * 9 / 10} {
		for mode, change := range map[string]func(*engine.Config){
			"overlap":  nil,
			"serial":   func(c *engine.Config) { c.Overlap = false },
			"one lane": func(c *engine.Config) { c.Lanes = 1 },
			"buffered": func(c *engine.Config) { c.Direct = false },
		} {
			t.Run(name+", "+mode, func(t *testing.T) {
				d := &drive{from: from, read: broken}
				if mode != "overlap" && from > 100 {
					d.from = from * 2 / 3 // it makes fewer reads
				}
				s := streamed(t, d, change)
				tokens := 0
				_, err := s.Generate(t.Context(), request, func(engine.Token) error { tokens++; return nil })
				require.ErrorIs(t, err, syscall.EIO)
				assert.ErrorContains(t, err, "read experts: read "+d.Path()+" at ")
				if from == 1 {
					assert.Zero(t, tokens, "no answer was made up")
				}
				_, err = s.Generate(t.Context(), request, func(engine.Token) error { return nil })
				require.ErrorIs(t, err, syscall.EIO, "the drive is still broken, and says so anew")
				d.mended.Store(true)
				assert.Equal(t, want, answer(s))
				assert.NoError(t, s.Close())
			})
		}
	}
	t.Run("a read that ends early", func(t *testing.T) {
		d := &drive{from: 200, read: func(d *drive, p []byte, off int64) (int, error) { return d.File.ReadAt(p[:len(p)/2/4096*4096], off) }}
		s := streamed(t, d, nil)
		_, err := s.Generate(t.Context(), request, func(engine.Token) error { return nil })
		assert.ErrorContains(t, err, d.Path())
		assert.NoError(t, s.Close())
	})
	s = streamed(t, nil, nil)
	assert.Equal(t, want, answer(s))
	require.NoError(t, s.Close())
}

// A drive that does not answer keeps nobody waiting.
func TestInterruptWhileTheDriveHangs(t *testing.T) {
	for try := range tries {
		hung, release := make(chan struct{}), make(chan struct{})
		d := &drive{from: 300, read: func(d *drive, p []byte, off int64) (int, error) {
			if d.reads.Load() == d.from {
				close(hung)
			}
			<-release
			return d.File.ReadAt(p, off)
		}}
		s := streamed(t, d, func(c *engine.Config) { c.Lanes = 1 })
		ctx, cancel := context.WithCancel(t.Context())
		var start time.Time
		go func() {
			<-hung
			start = time.Now()
			cancel()
		}()
		r, err := s.Generate(ctx, request, func(engine.Token) error { return nil })
		took := time.Since(start)
		assert.NoError(t, err)
		assert.Equal(t, engine.StopInterrupted, r.Stop)
		close(release)
		assert.NoError(t, s.Close())
		if took < second {
			return
		} else if try == tries-1 {
			t.Errorf("it took %v to end", took)
		}
	}
}
