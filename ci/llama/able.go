package llama

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bmoe/bmoe/backends"
)

// Lacks says why this toolchain can't build a CPU module: the compiler doesn't know the processor's instructions. "" if it can.
func (tc Toolchain) Lacks(ctx context.Context, m backends.Module) string {
	if flags := m.Flags(); !tc.compiles(ctx, "int main() { return 0; }", flags...) {
		return fmt.Sprintf("%s does not know %s", tc.CXX, tc.unknown(ctx, flags))
	}
	return ""
}

// unknown picks the flags that the compiler refuses by themselves.
func (tc Toolchain) unknown(ctx context.Context, flags []string) string {
	var refused []string
	for _, f := range flags {
		if !tc.compiles(ctx, "int main() { return 0; }", f) {
			refused = append(refused, f)
		}
	}
	if refused == nil {
		refused = flags
	}
	return strings.Join(refused, " ")
}

// Misses says what building an accelerator's module for the system goos takes and is not here. "" if nothing is missing.
func (tc Toolchain) Misses(ctx context.Context, a backends.Accelerator, goos string) string {
	if !a.On(goos) {
		return fmt.Sprintf("there is none for %s", goos)
	}
	var missing []string
	for _, name := range a.Variables {
		if dir := os.Getenv(name); dir == "" {
			missing = append(missing, name+" names no folder")
		} else if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			missing = append(missing, fmt.Sprintf("%s is %q, which is no folder", name, dir))
		}
	}
	for _, name := range a.Programs {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name+" is not on the PATH")
		}
	}
	if why := shader(ctx, a.Shader); missing == nil && why != "" {
		missing = append(missing, why)
	}
	for _, name := range a.Headers {
		if !tc.compiles(ctx, fmt.Sprintf("#include <%s>\nint main() { return 0; }", name)) {
			missing = append(missing, fmt.Sprintf("the compiler finds no %s", name))
		}
	}
	if a.Library != "" && !tc.compiles(ctx, "int main() { return 0; }", "-l"+a.Library) {
		missing = append(missing, fmt.Sprintf("the linker for %s finds no library %s", tc.Machine, a.Library))
	}
	return strings.Join(missing, "; ")
}

// shader says that glslc does not know an extension; "" if it does.
func shader(ctx context.Context, extension string) string {
	if extension == "" {
		return ""
	}
	cmd := exec.CommandContext(ctx, "glslc", "-fshader-stage=compute", "--target-env=vulkan1.3", "-o", os.DevNull, "-")
	cmd.Stdin = strings.NewReader("#version 450\n#extension " + extension + " : require\nvoid main() {}\n")
	if cmd.Run() == nil {
		return ""
	}
	said, _ := exec.CommandContext(ctx, "glslc", "--version").Output()
	first, _, _ := strings.Cut(string(said), "\n")
	return fmt.Sprintf("glslc (%s) does not know %s; one of 2023.8 or newer does", first, extension)
}

// compiles says whether the C++ compiler makes a program of the text.
func (tc Toolchain) compiles(ctx context.Context, text string, flags ...string) bool {
	dir, err := os.MkdirTemp("", "bmoe-able-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	own := strings.Fields(os.Getenv("CXXFLAGS"))
	if tc.foreign != nil {
		own = nil // they are for this machine's compiler
	}
	args := append(own, "-x", "c++", "-o", filepath.Join(dir, "program"), "-")
	cmd := exec.CommandContext(ctx, tc.cxx, append(args, flags...)...)
	cmd.Stdin = bytes.NewBufferString(text)
	return cmd.Run() == nil
}
