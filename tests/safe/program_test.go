//go:build unix

package safe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/process"
)

// What the program ends with.
const (
	done        = 0
	failed      = 1
	badInput    = 2
	interrupted = 130
)

// patience is how long a run may take before it counts as hanging. The runs here take well under a second of a processor, but
// may have to wait for one.
const patience = time.Minute

var (
	cli     string // the program
	scratch string // for what tests share
)

func TestMain(m *testing.M) {
	code, err := prepare(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func prepare(m *testing.M) (code int, err error) {
	exe, err := process.Executable()
	if err != nil {
		return 0, err
	}
	cli = filepath.Join(filepath.Dir(exe), "bmoe-cli")
	if _, err := os.Stat(cli); err != nil {
		return 0, fmt.Errorf("these tests run the program that lies beside them: %w; `go tool mage test` builds it and puts them there", err)
	}
	if scratch, err = os.MkdirTemp("", "bmoe-safe-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if err := os.Chmod(scratch, 0o755); err != nil { // one test is another user
		return 0, err
	}
	return m.Run(), nil
}

// outcome is a run that has ended.
type outcome struct {
	code           int // -1: a signal ended it
	state          string
	stdout, stderr string
	took           time.Duration
}

// command is the program with a group of its own, none of the person's BMOE_ variables, and a history that is not theirs.
func command(args ...string) *exec.Cmd {
	c := exec.Command(cli, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "BMOE_") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "XDG_STATE_HOME="+filepath.Join(scratch, "state"))
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// run runs the program to its end, on one thread where no flag says otherwise: threads that wait for each other take long
// where tests share the processors.
func run(t testing.TB, args ...string) outcome {
	t.Helper()
	c := command(args...)
	c.Env = append(c.Env, "BMOE_THREADS=1")
	return wait(t, c)
}

// wait runs a command to its end, and ends it when it takes too long. Its output is kept where nobody else takes it.
func wait(t testing.TB, c *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stderr = &stderr
	if c.Stdout == nil {
		c.Stdout = &stdout
	}
	start := time.Now()
	require.NoError(t, c.Start())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	err := c.Wait()
	hung := !stop()
	cancel()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	o := outcome{c.ProcessState.ExitCode(), c.ProcessState.String(), stdout.String(), stderr.String(), time.Since(start)}
	require.False(t, hung, "%v hangs; it said:\n%s", c.Args, o.stderr)
	return o
}

// crash is what a program prints that did not end of its own accord.
var crash = regexp.MustCompile(`panic|goroutine \d|fatal error|GGML_ASSERT|SIG[A-Z]{3,}|terminate called|core dumped|runtime error`)

// orderly checks that the run ended with the code, by itself.
func (o outcome) orderly(t testing.TB, code int) bool {
	t.Helper()
	ok := assert.Equal(t, code, o.code, "%s; it said:\n%s", o.state, o.stderr)
	return assert.NotRegexp(t, crash, o.stderr) && ok
}

// refused checks that the run ended with the code, and that one line says why, with all of the words.
func (o outcome) refused(t testing.TB, code int, words ...string) {
	t.Helper()
	o.orderly(t, code)
	lines := complaints(o.stderr)
	if !assert.Len(t, lines, 1, "one clear line; it said:\n%s", o.stderr) {
		return
	}
	assert.True(t, strings.HasSuffix(o.stderr, lines[0]+"\n"), "the line comes last; it said:\n%s", o.stderr)
	for _, word := range words {
		assert.Contains(t, lines[0], word)
	}
}

// complaints are the lines about what went wrong, of the program and of the libraries' log.
func complaints(stderr string) []string {
	var lines []string
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "bmoe-cli: ") || strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}
