package plan

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The planner can see no more than profiles and parameters, and asks about properties: nothing in its sources is named
// after an operating system, a vendor or a backend.
func TestPure(t *testing.T) {
	t.Parallel()
	const module = "github.com/bmoe/bmoe/"
	allowed := []string{module + "core/machine", module + "core/model", module + "core/params"}
	impure := []string{"os", "io/fs", "net", "time", "math/rand", "math/rand/v2", "syscall", "unsafe", "runtime", "log", "log/slog", "os/exec", "path/filepath"}
	names := regexp.MustCompile(`(?i)\b(linux|darwin|macos|osx|windows|android|ios|bsd|apple|nvidia|amd|intel|qualcomm|arm|adreno|mali|hexagon|snapdragon|` +
		`cuda|metal|vulkan|rocm|hip|sycl|opencl|openvino|cann|musa|webgpu|blas|kompute|jetson|grace|blackwell|geforce|radeon)\b`)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		seen++
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Empty(t, names.FindAllString(string(source), -1), file)
		tree, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range tree.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			if strings.Contains(strings.Split(path, "/")[0], ".") {
				assert.Contains(t, allowed, path, "%s imports %s", file, path)
			}
			assert.False(t, slices.Contains(impure, path), "%s imports %s", file, path)
		}
	}
	assert.Greater(t, seen, 15)
}

// The stages come in the specification's order, and the steps of an allocation in theirs.
func TestOrder(t *testing.T) {
	t.Parallel()
	var names []string
	for _, stage := range stages {
		names = append(names, stage.name)
	}
	assert.Equal(t, []string{"widest graph", "regime", "placement", "accelerator axis", "dense policy", "ledger and prefill device",
		"cache floor", "storage knobs", "devices listed"}, names)
	names = nil
	for _, step := range steps {
		names = append(names, step.name)
	}
	assert.Equal(t, []string{"fixed rows", "price every lane", "candidates", "rank", "spend"}, names)
}
