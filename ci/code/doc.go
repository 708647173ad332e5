// Package code builds, checks and tests this repository's own Go code with the go command.
//
// It must not know how llama.cpp is built; it is told where its libraries are.
package code

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Repo is a checkout.
type Repo struct {
	Root string
}

// run runs the go command with its output going to ours.
func (r Repo) run(ctx context.Context, env []string, args ...string) error {
	cmd := r.command(ctx, env, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return explain(cmd.Run(), args)
}

// lines runs the go command and returns its output line by line.
func (r Repo) lines(ctx context.Context, env []string, args ...string) ([]string, error) {
	var out bytes.Buffer
	cmd := r.command(ctx, env, args...)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	err := cmd.Run()
	return strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' }), explain(err, args)
}

func (r Repo) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.Root
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

func explain(err error, args []string) error {
	if err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args[:min(2, len(args))], " "), err)
	}
	return nil
}

// commands lists the import paths of the product's programs.
func (r Repo) commands(ctx context.Context) ([]string, error) {
	return r.lines(ctx, nil, "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "./cmd/...")
}
