package llama

import (
	"context"
	"os"
	"time"
)

// lock takes the only lock on an open file, which the system gives back when the file is closed or its process dies. While
// another process has it, waiting is called once and the lock is tried for until ctx ends.
func lock(ctx context.Context, f *os.File, waiting func()) error {
	for first := true; ; first = false {
		taken, err := tryLock(f)
		if taken || err != nil {
			return err
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
