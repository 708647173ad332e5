//go:build unix

package safe

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/storage"
)

// second is how long an interrupted run may take to end. A busy machine may not even give the program a processor in that
// time, so a run that took longer is tried again, twice.
const (
	second = time.Second
	tries  = 3
)

// heard is output that is looked at as it comes.
type heard struct {
	mu    sync.Mutex
	all   bytes.Buffer
	word  string
	found chan struct{} // closed once word is in the output
}

func listen(word string) *heard { return &heard{word: word, found: make(chan struct{})} }

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.all.Len()
	h.all.Write(p)
	if from := max(before-len(h.word), 0); strings.Contains(string(h.all.Bytes()[from:]), h.word) {
		select {
		case <-h.found:
		default:
			close(h.found)
		}
	}
	return len(p), nil
}

func (h *heard) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.String()
}

// phase is where a run is interrupted.
type phase struct {
	name  string
	args  []string
	in    bool                                // standard input stays open
	at    string                              // in the log: the phase has begun
	token bool                                // or the first token
	ends  func(t *testing.T, out, err string) // what there is and is not in the end
}

func notBegun(later string) func(*testing.T, string, string) {
	return func(t *testing.T, out, err string) {
		assert.NotContains(t, err, later, "the interrupt came in the phase")
		assert.Empty(t, out)
		assert.Contains(t, err, "\ninterrupted\n")
	}
}

func reported(t *testing.T, _, err string) {
	assert.Regexp(t, `(?m)^prefill  \d+ token`, err)
	assert.Regexp(t, `(?m)^ended    interrupted$`, err)
}

// Ctrl-C and SIGTERM end every phase within a second, with what there is to report, and leave no process behind.
func TestInterrupt(t *testing.T) {
	m := model(t, moe)[0]
	dir := t.TempDir()
	// Half a gigabyte of dense weights before gigabytes of experts, none of it on the disk.
	wide := made{arch: "qwen3moe", layers: 3, embed: 4096, ff: 2048, experts: 32, context: 512}.write(t, filepath.Join(dir, "wide.gguf"))
	dense := made{arch: "llama", layers: 4, embed: 4096, ff: 2048, context: 512}.write(t, filepath.Join(dir, "dense.gguf"))
	long := filepath.Join(dir, "long")
	require.NoError(t, os.WriteFile(long, []byte(strings.Repeat("abcdefghij", 400)), 0o644))

	const prefill = "step=prefill"
	for i, p := range []phase{
		{name: "waiting for the prompt", args: []string{"-m", m, "-f", "-"}, in: true, at: "reading the prompt", ends: notBegun("mode: ")},
		{name: "loading", args: []string{"-m", dense, "-p", "a"}, at: "this can take a while", ends: notBegun(prefill)},
		{name: "loading, streamed", args: []string{"-m", wide, "-p", "a", "--moe-stream", "--cache-mb", "0"}, at: "step=loading", ends: notBegun(prefill)},
		{name: "taking memory", args: []string{"-m", wide, "-p", "a", "--moe-stream", "--cache-mb", "800", "--dense-weights", "mmap"},
			at: `step="taking memory for experts"`, ends: notBegun(prefill)},
		{name: "warming", args: []string{"-m", wide, "-p", "a", "--moe-stream", "--cache-mb", "0", "--dense-weights", "warm"},
			at: `step="warming the dense set"`, ends: notBegun(prefill)},
		{name: "prefill", args: []string{"-m", m, "-f", long, "-c", "8192"}, at: prefill, ends: reported},
		{name: "prefill, streamed", args: []string{"-m", m, "-f", long, "-c", "8192", "--moe-stream", "--cache-mb", "0"}, at: prefill, ends: reported},
		{name: "prefill, narrow", args: []string{"-m", m, "-f", long, "-c", "8192", "-ub", "1", "--moe-stream", "--cache-mb", "0", "--no-overlap"}, at: prefill, ends: reported},
		{name: "decode", args: []string{"-m", m, "-p", "a", "-c", "32768", "-ub", "64", "-n", "32000", "--ignore-eos"}, token: true, ends: reported},
		{name: "decode, streamed", args: []string{"-m", m, "-p", "a", "-c", "32768", "-ub", "64", "-n", "32000", "--ignore-eos", "--moe-stream", "--cache-mb", "5"}, token: true, ends: reported},
		{name: "decode, planned", args: []string{"-m", m, "-p", "a", "-c", "32768", "-n", "32000", "--ignore-eos", "--auto"}, token: true, ends: reported},
	} {
		t.Run(p.name, func(t *testing.T) {
			signal := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[i%2]
			for try := range tries {
				if p.at == "this can take a while" {
					require.NoError(t, storage.DropCache(dense))
				}
				if took := interrupt(t, p, signal); took < second {
					t.Logf("ended %v after %v", took.Round(time.Millisecond), signal)
					return
				} else if try == tries-1 {
					t.Errorf("it took %v to end", took)
				}
			}
		})
	}
}

// interrupt runs the phase, interrupts it, checks how it ended, and is how long that took.
func interrupt(t *testing.T, p phase, signal syscall.Signal) time.Duration {
	t.Helper()
	c := command(append(p.args, "-v")...)
	out, err := listen("\x00"), listen(p.at)
	begun := err.found
	if p.token {
		out = listen("") // anything
		begun = out.found
	}
	c.Stdout, c.Stderr = out, err
	if p.in {
		r, w, pipeErr := os.Pipe()
		require.NoError(t, pipeErr)
		defer r.Close()
		defer w.Close()
		c.Stdin = r
	}
	require.NoError(t, c.Start())
	select {
	case <-begun:
	case <-time.After(patience):
		require.NoError(t, syscall.Kill(-c.Process.Pid, syscall.SIGKILL))
		_ = c.Wait() // it was killed
		require.Fail(t, "the phase does not begin", err.text())
	}
	start := time.Now()
	require.NoError(t, c.Process.Signal(signal))
	killed := time.AfterFunc(patience, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	_ = c.Wait() // the code is looked at
	took := time.Since(start)
	killed.Stop()
	outcome{code: c.ProcessState.ExitCode(), state: c.ProcessState.String(), stderr: err.text()}.orderly(t, interrupted)
	assert.NotContains(t, err.text(), "level=ERROR", "llama.cpp's own words about a graph that was ended are nobody's business")
	assert.NotContains(t, err.text(), "bmoe-cli: ", "an interrupt is no fault")
	assert.ErrorIs(t, syscall.Kill(-c.Process.Pid, 0), syscall.ESRCH, "no process is left")
	p.ends(t, out.text(), err.text())
	return took
}

// A run that is stuck where no interrupt reaches it, in a write that nobody reads, ends all the same, and a second interrupt
// ends it at once.
func TestInterruptStuckRun(t *testing.T) {
	m := model(t, moe)[0]
	for _, c := range []struct {
		name    string
		signals int
		within  time.Duration
	}{
		{"once", 1, second},
		{"twice", 2, 500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			for try := range tries {
				if took := stuck(t, m, c.signals); took < c.within {
					t.Logf("ended after %v", took.Round(time.Millisecond))
					return
				} else if try == tries-1 {
					t.Errorf("it took %v to end", took)
				}
			}
		})
	}
}

// stuck runs until nothing more can be written, sends so many signals and is how long the program then took to end.
func stuck(t *testing.T, m string, signals int) time.Duration {
	t.Helper()
	csv := filepath.Join(t.TempDir(), "run.csv")
	c := command("-m", m, "-p", "a", "-n", "30000", "-c", "32768", "-ub", "64", "--ignore-eos", "--progress", "--csv", csv)
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	unread, out := os.NewFile(uintptr(pair[0]), "unread"), os.NewFile(uintptr(pair[1]), "out")
	defer unread.Close()
	require.NoError(t, syscall.SetsockoptInt(pair[1], syscall.SOL_SOCKET, syscall.SO_SNDBUF, 1024)) // the system makes it its least
	c.Stdout = out
	require.NoError(t, c.Start())
	require.NoError(t, out.Close())
	t.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }) // where it did not end
	var rows int
	require.Eventually(t, func() bool { // the rows end where the writes do
		text, err := os.ReadFile(csv)
		if err != nil {
			return false
		}
		before := rows
		rows = bytes.Count(text, []byte("\n"))
		return rows == before && rows > 3 // those of the head
	}, patience, 200*time.Millisecond)
	start := time.Now()
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	if signals == 2 {
		require.NoError(t, c.Process.Signal(syscall.SIGTERM)) // two of a kind, sent so soon, may be delivered as one
	}
	_ = c.Wait() // the code is looked at
	took := time.Since(start)
	assert.Equal(t, interrupted, c.ProcessState.ExitCode(), c.ProcessState)
	assert.ErrorIs(t, syscall.Kill(-c.Process.Pid, 0), syscall.ESRCH, "no process is left")
	return took
}
