//go:build unix

package safe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each mistake on the command line is one line that names the flag.
func TestFlagsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	m := model(t, moe)[0]
	for line, want := range map[string]string{
		"":                                         "what is the prompt?",
		"-p a extra":                               `"extra" is not a flag`,
		"-p a -f b":                                "--prompt and --file contradict each other",
		"-p a -p b":                                "given twice",
		"-p a -n -1":                               "--n-predict",
		"-p a -n 99999999999999999999":             "--n-predict",
		"-p a -t 0":                                "--threads: must be 1 to 512",
		"-p a -t 10000":                            "--threads: must be 1 to 512",
		"-p a --threads-batch 0":                   "--threads-batch: must be 1 to 512",
		"-p a -c -1":                               "--ctx-size",
		"-p a --ubatch 0":                          "--ubatch",
		"-p a --temp NaN":                          "--temp",
		"-p a --temp -1":                           "--temp",
		"-p a --top-p 2":                           "--top-p",
		"-p a -ctk q9_9":                           "--cache-type-k",
		"-p a -ctv q8_0 -fa off":                   "a quantized value cache needs flash attention",
		"-p a --cache-mb 10":                       "--cache-mb does nothing without --moe-stream or --auto",
		"-p a --no-moe-stream --cache-mb 1":        "--cache-mb",
		"-p a --moe-stream --cache-mb -1":          "--cache-mb",
		"-p a --moe-stream --cache-mb many":        "--cache-mb",
		"-p a --moe-stream --io-threads 0":         "--io-threads",
		"-p a --moe-stream --io-threads 65":        "--io-threads",
		"-p a --moe-stream --dense-weights frozen": `"frozen" is none of mmap, warm, anon, pinned`,
		"-p a --moe-stream --memory 1K":            "--memory",
		"-p a --moe-stream --memory 100M --cache-mb 200": "the cache would be larger than all the memory",
		"-p a --n-expert-used 33":                        "--n-expert-used 33: the model has 32 experts",
		"-p a --n-expert-used 0":                         "--n-expert-used",
		"-p a -v --log-level error":                      "--verbose and --log-level",
		"-p a --nonsense":                                "--nonsense",
		"-p a --overlap=perhaps":                         "--overlap",
		"-f no-such-prompt":                              "no-such-prompt",
		"-f .":                                           "read the prompt",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			o := run(t, append([]string{"-m", m}, strings.Fields(line)...)...)
			o.refused(t, badInput, want)
			assert.Empty(t, o.stdout)
		})
	}
	run(t, "-p", "a").refused(t, badInput, "which model?")
	run(t, "-m", "", "-p", "a").refused(t, badInput, "--model")
}

// Unusual, and yet right.
func TestUnusualRuns(t *testing.T) {
	t.Parallel()
	m := model(t, moe)[0]
	for line, code := range map[string]int{
		"-n 0":                           done,
		"-n 0 --moe-stream":              done,
		"-n 1 --moe-stream --cache-mb 0": done,
		"-n 1 --moe-stream --cache-mb 99999999 --io-threads 64": done, // no more than the model has
		"-n 1 -t 1":               done,
		"-n 1 -c 1":               done, // llama.cpp rounds up
		"-n 1 -ub 1 --moe-stream": done,
		"-n 1 --moe-stream --dense-weights pinned": done,
		"-n 1 --moe-stream --dense-weights mmap":   done,
		"-n 1 --moe-stream --n-expert-used 32":     done,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"-m", m, "-p", "a"}, strings.Fields(line)...)
			if !strings.Contains(line, "-c ") {
				args = append(args, "-c", "64")
			}
			o := run(t, args...)
			o.orderly(t, code)
			assert.Empty(t, complaints(o.stderr))
			assert.True(t, strings.HasPrefix(o.stderr, "mode: "), o.stderr)
			if strings.HasPrefix(line, "-n 0") {
				assert.Empty(t, o.stdout)
			}
		})
	}
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	m := model(t, moe)[0]
	long := filepath.Join(t.TempDir(), "long")
	require.NoError(t, os.WriteFile(long, []byte(strings.Repeat("many words ", 500)), 0o644))
	for _, mode := range []string{"--no-moe-stream", "--moe-stream"} {
		run(t, "-m", m, "-f", long, "-c", "256", mode).refused(t, badInput, "the prompt has ", " tokens and the context 256", "-c")
		run(t, "-m", m, "-p", "", "-n", "2", "-c", "64", mode).orderly(t, done) // the model's own first token
	}
	dense := smallDense.write(t, filepath.Join(t.TempDir(), "dense.gguf"))
	run(t, "-m", dense, "-p", "", "-n", "2", "-c", "64").refused(t, badInput, "the prompt is empty") // it puts no token of its own first
	binary := filepath.Join(t.TempDir(), "binary")
	require.NoError(t, os.WriteFile(binary, []byte("\x00\xff\xfe\x80 \xf0\x9f"), 0o644))
	run(t, "-m", dense, "-f", binary, "-n", "1", "-c", "64").orderly(t, done)
	run(t, "-m", m, "-f", binary, "-n", "1", "-c", "64").orderly(t, done)
}
