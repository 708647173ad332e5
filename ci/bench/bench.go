// Package bench builds a program of the benchmarks beside the libraries and the product, and runs it.
//
// It must not know what is measured; tests/bench and the packages below it do.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Run builds the program of a package (./tests/bench) into bin and starts it in root with the arguments. Interrupted, it is given the time to end its
// children.
func Run(ctx context.Context, root, bin, pkg string, args ...string) error {
	program := filepath.Join(bin, "bmoe-"+strings.ReplaceAll(strings.TrimPrefix(pkg, "./tests/"), "/", "-"))
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, pkg)
	build.Dir, build.Stdout, build.Stderr = root, os.Stdout, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the benchmarks: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("the benchmarks: %w; what failed is said above", err)
	}
	return err
}
