package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"time"
)

// What is kept of a child's output, in bytes: a child that prints without end fills no memory.
const (
	mostOutput = 1 << 20
	mostWords  = 64 << 10
)

// Again runs this program again with these arguments and gives what it printed, the first MiB of it, also where it failed.
// The error says how the child ended, where it did not end well, and the last line of what it wrote to standard error: a
// signal, an exit status, or ctx's end, which kills it and what it started. Where the system can do that, the child ends
// when this process does.
func Again(ctx context.Context, args ...string) ([]byte, error) {
	exe, err := Executable()
	if err != nil {
		return nil, err
	}
	// Linux ends a child when the thread that started it ends: this one stays until the child is gone.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, words := &head{most: mostOutput}, &tail{most: mostWords}
	child := exec.CommandContext(ctx, exe, args...)
	child.Stdout, child.Stderr = out, words
	child.WaitDelay = time.Second // for what the child itself started and left with the pipe open
	together(child)
	err = child.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return out.kept, ctx.Err()
	case errors.As(err, &ended):
		if signal := caught.FindSubmatch(words.kept); signal != nil {
			return out.kept, fmt.Errorf("signal %s", signal[1])
		}
		if said := words.lastLine(); said != "" {
			return out.kept, fmt.Errorf("%w: %s", err, said)
		}
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // the child ended well; what it left behind did not let go of the pipe
	}
	return out.kept, err
}

// caught is how Go's runtime says that it caught a signal which C got: before all the stacks, which nobody asked for.
var caught = regexp.MustCompile(`(?m)^(?:\[signal )?(SIG[A-Z]+: [a-z -]+?)(?: code=.*)?$`)

// head keeps the beginning of what is written.
type head struct {
	kept []byte
	most int
}

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), h.most-len(h.kept))]...)
	return len(p), nil
}

// tail keeps the end of what is written.
type tail struct {
	kept []byte
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// lastLine is the last line with anything in it.
func (t *tail) lastLine() string {
	text := bytes.TrimSpace(t.kept)
	return string(bytes.TrimSpace(text[bytes.LastIndexByte(text, '\n')+1:]))
}
