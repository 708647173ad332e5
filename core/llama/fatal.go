package llama

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/ebitengine/purego"

	"github.com/bmoe/bmoe/platform/dynlib"
)

// fatal is who is told before the process ends. ggml takes one function for the process.
var fatal struct {
	once sync.Once
	err  error
	tell func(said string)
}

// OnFatal has f told what llama.cpp says when it can't go on: a check of its own failed, or an exception was caught by
// nobody. It then ends the process without cleaning up, so f is the place for last words; f may end the process itself. It
// runs on the thread that failed.
//
// Source: ggml_set_abort_callback of ggml.h; std::set_terminate where the C++ library is one of its own.
func (l *Library) OnFatal(f func(said string)) error {
	fatal.tell = f
	fatal.once.Do(func() {
		base, err := dynlib.Open(filepath.Join(l.Dir, dynlib.Name("ggml-base"))) // the one that is open
		if err != nil {
			fatal.err = err
			return
		}
		set, err := dynlib.Symbol(base, "ggml_set_abort_callback")
		if err != nil {
			fatal.err = err
			return
		}
		purego.SyscallN(set, purego.NewCallback(func(message uintptr) uintptr {
			fatal.tell(plainly(GoString(message)))
			return 0
		}))
		if set, err := dynlib.Symbol(base, "_ZSt13set_terminatePFvvE"); err == nil {
			abort, err := dynlib.CSymbol("abort")
			if err != nil {
				fatal.err = err
				return
			}
			purego.SyscallN(set, purego.NewCallback(func() uintptr {
				fatal.tell("an exception in it was caught by nobody")
				purego.SyscallN(abort) // C++ forbids to return
				return 0
			}))
		}
	})
	return fatal.err
}

var assertion = regexp.MustCompile(`GGML_ASSERT\((.*)\) failed`)

// plainly shortens "/where/it/was/built/ggml.c:12: GGML_ASSERT(x) failed" to "ggml.c:12: the check x failed". ggml says
// "fatal error" where a case is not handled.
func plainly(said string) string {
	where, what, ok := strings.Cut(said, ": ")
	if ok && !strings.Contains(where, " ") {
		said = path.Base(strings.ReplaceAll(where, `\`, "/")) + ": " + what
	}
	if head, ok := strings.CutSuffix(said, ": fatal error"); ok {
		return head + ": a case that is not handled"
	}
	return assertion.ReplaceAllString(said, "the check $1 failed")
}
