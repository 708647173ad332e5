package process

import (
	"context"
	"os/exec"
	"time"
)

// Again runs this program again with these arguments and gives what it printed, also where it failed. The error says how the child ended, where it
// did not end well: a signal, an exit status, or ctx's end, which kills it.
func Again(ctx context.Context, args ...string) ([]byte, error) {
	exe, err := Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, exe, args...)
	child.WaitDelay = time.Second // for what the child itself started and left with the pipe open
	out, err := child.Output()
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	return out, err
}
