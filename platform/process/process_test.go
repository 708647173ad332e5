package process_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/pages"
	"github.com/bmoe/bmoe/platform/process"
)

// printEnv makes the test binary print which file it runs from.
const printEnv = "BMOE_TEST_PROCESS_PRINT"

// The hidden modes of the test binary that TestAgain starts: the first argument.
var modes = map[string]func(){
	"--say":  func() { fmt.Print(os.Args[2:]) },
	"--fail": func() { fmt.Print("half an ans"); os.Exit(3) },
	"--hang": func() { select {} },
	"--moan": func() { fmt.Fprint(os.Stderr, "a word\nits last words \n\n"); os.Exit(5) },
	"--chat": func() { // more than is kept, and the reader never stops it
		line := bytes.Repeat([]byte("x"), 1<<16)
		for range 64 {
			if _, err := os.Stdout.Write(line); err != nil {
				os.Exit(6)
			}
		}
		fmt.Fprint(os.Stderr, string(line))
	},
	"--leave": func() { // a child of its own that outlives it and holds the pipe
		child := exec.Command(os.Args[0], "--hang")
		child.Stdout = os.Stdout
		if child.Start() != nil {
			os.Exit(7)
		}
		fmt.Print("gone")
	},
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && modes[os.Args[1]] != nil {
		go func() { time.Sleep(time.Minute); os.Exit(4) }() // so that select is not all that runs, and nothing is left behind
		modes[os.Args[1]]()
		return
	}
	if os.Getenv(printEnv) != "" {
		path, err := process.Executable()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Print(path)
		return
	}
	os.Exit(m.Run())
}

func TestExecutableIsTheFileBehindALink(t *testing.T) {
	self, err := process.Executable()
	require.NoError(t, err)
	assert.True(t, filepath.IsAbs(self))
	info, err := os.Stat(self)
	require.NoError(t, err)
	assert.True(t, info.Mode().IsRegular())

	link := filepath.Join(t.TempDir(), "linked"+filepath.Ext(self))
	require.NoError(t, os.Symlink(self, link))
	child := exec.Command(link)
	child.Env = append(os.Environ(), printEnv+"=1")
	out, err := child.Output()
	require.NoError(t, err)
	assert.Equal(t, self, string(out))
}

// Every figure is Unknown or follows what the process does. These tests do not run side by side: they watch one process.
func TestUsageFollowsMemory(t *testing.T) {
	const size = 64 << 20
	const slack = 8 << 20 // the kernel counts per thread and adds up now and then; the test's own heap moves too
	before, err := process.Read()
	require.NoError(t, err)
	r, err := pages.Alloc(size)
	require.NoError(t, err)
	for i := 0; i < size; i += pages.Size() {
		r.Bytes()[i] = 1
	}
	held, err := process.Read()
	require.NoError(t, err)
	require.NoError(t, r.Free())
	after, err := process.Read()
	require.NoError(t, err)

	for name, figure := range map[string]func(process.Usage) int64{
		"anonymous": func(u process.Usage) int64 { return u.Anonymous },
		"resident":  func(u process.Usage) int64 { return u.Resident },
	} {
		if figure(before) == process.Unknown {
			continue
		}
		assert.InDelta(t, size, figure(held)-figure(before), slack, name)
		assert.InDelta(t, -size, figure(after)-figure(held), slack, name)
	}
	if held.PeakResident != process.Unknown {
		assert.GreaterOrEqual(t, held.PeakResident+slack, held.Resident)
		assert.GreaterOrEqual(t, after.PeakResident+slack, held.Resident)
	}
}

func TestUsageFollowsLocks(t *testing.T) {
	const size = 32 << 10
	before, err := process.Read()
	require.NoError(t, err)
	r, err := pages.Alloc(size)
	require.NoError(t, err)
	require.NoError(t, r.Lock(0, size))
	held, err := process.Read()
	require.NoError(t, err)
	require.NoError(t, r.Free())
	if before.Locked != process.Unknown {
		assert.EqualValues(t, size, held.Locked-before.Locked)
	}
}

// TestAgain: what a child prints comes back, with how it ended where that was not well; one that hangs ends with its context.
func TestAgain(t *testing.T) {
	t.Parallel()
	out, err := process.Again(t.Context(), "--say", "a b", `{"c":1}`)
	require.NoError(t, err)
	assert.Equal(t, `[a b {"c":1}]`, string(out))

	_, err = process.Again(t.Context(), "--fail")
	assert.ErrorContains(t, err, "exit status 3")

	_, err = process.Again(t.Context(), "--moan")
	assert.ErrorContains(t, err, "exit status 5: its last words")
	assert.NotContains(t, err.Error(), "a word")

	out, err = process.Again(t.Context(), "--chat")
	require.NoError(t, err)
	assert.Len(t, out, 1<<20)

	out, err = process.Again(t.Context(), "--leave")
	require.NoError(t, err)
	assert.Equal(t, "gone", string(out))

	limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = process.Again(limited, "--hang")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}
