// Package bench builds the benchmarks' program beside the libraries and runs it.
//
// It must not know what is measured; tests/bench does.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Run builds the program into bin and starts it in root with the arguments. Interrupted, it is given the time to end its
// children.
func Run(ctx context.Context, root, bin string, args ...string) error {
	program := filepath.Join(bin, "bmoe-bench")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./tests/bench")
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
