package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, test := range []struct {
		name  string
		ctx   context.Context
		args  []string
		code  int
		wrote bool
	}{
		{"no file", context.Background(), []string{"-model", "qwen3moe-20m"}, 2, false},
		{"no model", context.Background(), []string{"-o", "FILE"}, 2, false},
		{"two models", context.Background(), []string{"-o", "FILE", "-model", "qwen3moe-20m", "-bytes", "1000000"}, 2, false},
		{"unknown flag", context.Background(), []string{"-o", "FILE", "-size", "1"}, 2, false},
		{"unknown model", context.Background(), []string{"-o", "FILE", "-model", "qwen"}, 2, false},
		{"interrupted", ended, []string{"-o", "FILE", "-bytes", "3000000"}, 1, false},
		{"written", context.Background(), []string{"-o", "FILE", "-bytes", "3000000", "-seed", "5", "-locality", "0"}, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i, arg := range test.args {
				if arg == "FILE" {
					test.args[i] = filepath.Join(dir, "m.gguf")
				}
			}
			assert.Equal(t, test.code, run(test.ctx, test.args))
			entries, err := os.ReadDir(dir)
			assert.NoError(t, err)
			assert.Equal(t, test.wrote, len(entries) == 1)
		})
	}
}
