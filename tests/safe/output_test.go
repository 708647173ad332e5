//go:build unix

package safe

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// columns of --csv, as the help documents them. Programs read them: they are added to, never changed.
var columns = []string{"index", "id", "elapsed_ns", "hits", "misses", "read_bytes", "wait_ns"}

var modes = map[string][]string{
	"plain":    nil,
	"streamed": {"--moe-stream", "--cache-mb", "5"},
	"planned":  {"--auto"},
}

// The text is all there is on standard output; everything else is on standard error, the mode first; and every form of a
// run gives the same text.
func TestOutput(t *testing.T) {
	t.Parallel()
	m := model(t, moe)[0]
	const n = 12
	common := []string{"-m", m, "-p", "Hello", "-n", strconv.Itoa(n), "-c", "128", "--ignore-eos"}
	text := run(t, common...).stdout
	require.NotEmpty(t, text)
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := filepath.Join(t.TempDir(), "run.csv")
			o := run(t, append(append(common[:len(common):len(common)], mode...), "--csv", table)...)
			o.orderly(t, done)
			assert.Equal(t, text, o.stdout)
			assert.Regexp(t, `\Amode: [^\n]+\n`, o.stderr)
			for _, subject := range []string{"mode  ", "load  ", "prefill  ", "decode  ", "memory  ", "with  ", "ended  "} {
				assert.Regexp(t, "(?m)^"+subject, o.stderr)
			}
			assert.NotContains(t, o.stderr, "\r", "no bar on a pipe")
			rows := tableOf(t, table)
			assert.Equal(t, columns, rows[0])
			assert.Len(t, rows, 1+n)

			lines := run(t, append(append(common[:len(common):len(common)], mode...), "--progress")...)
			lines.orderly(t, done)
			var said strings.Builder
			scan := bufio.NewScanner(strings.NewReader(lines.stdout))
			for i := 0; scan.Scan(); i++ {
				var token map[string]any
				require.NoError(t, json.Unmarshal(scan.Bytes(), &token), scan.Text())
				var fields []string
				for name := range token {
					fields = append(fields, name)
				}
				assert.ElementsMatch(t, append(columns[:len(columns):len(columns)], "text"), fields)
				if i < n {
					assert.EqualValues(t, i, token["index"])
					assert.Equal(t, rows[1+i][1], strconv.Itoa(int(token["id"].(float64))), "the same tokens")
				}
				said.WriteString(token["text"].(string))
			}
			assert.Equal(t, text, said.String())
		})
	}
}

func tableOf(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	return rows
}

// The help documents every column, and is the same as what --csv writes.
func TestColumnsAreDocumented(t *testing.T) {
	t.Parallel()
	o := run(t, "--help")
	o.orderly(t, done)
	assert.Empty(t, o.stderr)
	_, after, found := strings.Cut(o.stdout, "columns of --csv:\n")
	require.True(t, found)
	var documented []string
	for _, line := range regexp.MustCompile(`(?m)^  ([a-z_]+)  .*$`).FindAllStringSubmatch(after, len(columns)+1) {
		if line[1] != "text" {
			documented = append(documented, line[1])
		}
	}
	assert.Equal(t, columns, documented)
}

// A table that can't be written is refused before the model is loaded, or where the drive is full, fails the run.
func TestTableThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	m := model(t, moe)[0]
	dir := t.TempDir()
	run(t, "-m", m, "-p", "a", "--csv", filepath.Join(dir, "no", "run.csv")).refused(t, badInput, "--csv", "run.csv", "no such file")
	run(t, "-m", m, "-p", "a", "--csv", dir).refused(t, badInput, "--csv", "is a directory")
	run(t, "-m", m, "-p", "a", "--csv", "").refused(t, badInput, "--csv")
	run(t, "-m", m, "-p", "a", "-n", "2", "-c", "64", "--csv", "/dev/full").refused(t, failed, "--csv", "/dev/full", "no space left")
}

// A reader that goes away ends the run with a line, not with a signal.
func TestOutputThatNobodyReads(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer w.Close()
	c := command("-m", model(t, moe)[0], "-p", "a", "-n", "30", "-c", "64", "--ignore-eos")
	var stderr strings.Builder
	c.Stdout, c.Stderr = w, &stderr
	_ = c.Run() // the code is looked at
	outcome{code: c.ProcessState.ExitCode(), state: c.ProcessState.String(), stderr: stderr.String()}.refused(t, failed, "write to standard output", "broken pipe")
}
