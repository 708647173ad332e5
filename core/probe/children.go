package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/bmoe/bmoe/core/llama"
	"github.com/bmoe/bmoe/platform/process"
)

// Again starts this program again in one of the modes of Child, and gives what it printed. nil: this system starts no child,
// and what one would be asked is asked here.
type Again func(ctx context.Context, args ...string) ([]byte, error)

// ErrNoAnswer is of a child that was ended because its time was over.
var ErrNoAnswer = errors.New("no answer within")

// Isolated starts children of this executable, and ends one that does not answer within the limit. What a child printed
// before it failed comes with the error.
func Isolated(limit time.Duration) Again {
	return func(ctx context.Context, args ...string) ([]byte, error) {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		out, err := process.Again(limited, args...)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return out, fmt.Errorf("%w %s", ErrNoAnswer, limit)
		}
		return out, err
	}
}

// children are the hidden modes by the flag that asks for them. Each takes one argument and prints one line of JSON.
var children = map[string]func(argument string, out io.Writer) error{
	ChildPlace:    func(request string, out io.Writer) error { return Projector{Load: beside}.Child(request, out) },
	ChildHeadroom: headroomChild,
	ChildList:     listChild,
	ChildDevice:   deviceChild,
}

// Child does what a hidden mode asks, if the program's arguments ask for one, and says how the program ends then.
func Child(_ context.Context, args []string, out io.Writer) (handled bool, code int) {
	if len(args) != 2 {
		return false, 0
	}
	mode, handled := children[args[0]]
	if !handled {
		return false, 0
	}
	if err := mode(args[1], out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true, 1
	}
	return true, 0
}

// beside opens the libraries beside the executable.
func beside() (*llama.Library, error) {
	exe, err := process.Executable()
	if err != nil {
		return nil, err
	}
	return llama.Load(filepath.Dir(exe))
}
