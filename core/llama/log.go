package llama

import (
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// ggml's log levels (enum ggml_log_level).
const (
	logError = 4
	logCont  = 5
)

// native collects what the libraries say. Lines come in pieces: a text without a newline is continued by the next.
var native struct {
	sync.Mutex
	line    strings.Builder
	level   int32
	capture bool     // errors are kept, not shown to the person, while a call that reports them is under way
	errors  []string // the ones kept
	buffers *int64   // where the sizes of compute buffers are added up, while a context is made
	once    sync.Once
	hook    uintptr
}

// routeLogs sends the libraries' log to slog at debug level, and their errors at error level.
func (l *Library) routeLogs() {
	native.once.Do(func() {
		native.hook = purego.NewCallback(func(level int32, text uintptr, _ uintptr) uintptr {
			onLog(level, GoString(text))
			return 0
		})
	})
	l.LogSet(native.hook, 0)
	l.GGMLLogSet(native.hook, 0)
}

// onLog takes a piece of text: part of a line, a line, or several.
func onLog(level int32, text string) {
	native.Lock()
	defer native.Unlock()
	if level == logCont {
		level = native.level
	}
	if level != native.level {
		endLine() // what came before was left without its newline
		native.level = level
	}
	for {
		head, tail, ended := strings.Cut(text, "\n")
		native.line.WriteString(head)
		if !ended {
			return
		}
		endLine()
		text = tail
	}
}

// endLine passes on the line that has been collected. Lines of dots alone show a progress that is shown elsewhere.
func endLine() {
	line := strings.TrimSpace(native.line.String())
	native.line.Reset()
	if strings.Trim(line, ".") == "" {
		return
	}
	if native.buffers != nil {
		*native.buffers += computeBuffer(line)
	}
	switch {
	case native.level < logError:
	case native.capture:
		native.errors = append(native.errors, line)
	default:
		slog.Error(line, "from", "llama.cpp")
		return
	}
	if slog.Default().Enabled(context.Background(), slog.LevelDebug) {
		slog.Debug(line, "from", "llama.cpp")
	}
}

// captureErrors keeps the libraries' error lines from now on, for the error that will be returned. It allocates nothing:
// every token's decode is between it and captured.
func (l *Library) captureErrors() {
	native.Lock()
	defer native.Unlock()
	native.capture = true
}

// captured ends captureErrors and gives the lines.
func (l *Library) captured() []string {
	native.Lock()
	defer native.Unlock()
	lines := native.errors
	native.capture, native.errors = false, nil
	return lines
}

// reason is the cause of a failure: the first line that says one, without the names of functions before it. What the
// libraries say after that is what they could not do because of it.
func reason(lines []string, fallback string) string {
	for _, line := range lines {
		for {
			line = strings.TrimPrefix(line, "error loading model: ")
			head, tail, ok := strings.Cut(line, ": ")
			if !ok || strings.ContainsAny(head, " '\"") {
				break
			}
			line = tail
		}
		if line != "failed to load model" {
			return line
		}
	}
	return fallback
}

var computeLine = regexp.MustCompile(`compute buffer size =\s+([0-9.]+) MiB`)

// computeBuffer is the bytes of the compute buffer that a log line tells of, or 0. No call tells them: llama_context's
// sched_reserve prints "<backend> compute buffer size = <n> MiB".
func computeBuffer(line string) int64 {
	m := computeLine.FindStringSubmatch(line)
	if m == nil {
		return 0
	}
	mib, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	return int64(mib * (1 << 20))
}

// countBuffers adds up compute buffers until the returned function is called, which gives their bytes.
func (l *Library) countBuffers() func() int64 {
	var n int64
	native.Lock()
	native.buffers = &n
	native.Unlock()
	return func() int64 {
		native.Lock()
		defer native.Unlock()
		native.buffers = nil
		return n
	}
}
