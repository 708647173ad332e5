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
	logWarn  = 3
	logError = 4
	logCont  = 5
)

// native collects what the libraries say. Lines come in pieces: a message without a newline is continued by the next.
var native struct {
	sync.Mutex
	line    strings.Builder
	level   uintptr
	capture *[]string // where errors go instead of to the person, while a call that reports them is under way
	buffers *int64    // where the sizes of compute buffers are added up, while a context is made
	once    sync.Once
	hook    uintptr
}

// routeLogs sends the libraries' log to slog at debug level, and their errors at error level.
func (l *Library) routeLogs() {
	native.once.Do(func() {
		native.hook = purego.NewCallback(func(level uintptr, text uintptr, _ uintptr) uintptr {
			onLog(level, GoString(text))
			return 0
		})
	})
	l.LogSet(native.hook, 0)
	l.GGMLLogSet(native.hook, 0)
}

func onLog(level uintptr, text string) {
	native.Lock()
	defer native.Unlock()
	if level != logCont {
		native.level = level
	}
	native.line.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		return
	}
	line := strings.TrimSpace(native.line.String())
	native.line.Reset()
	if line == "" || strings.Trim(line, ".") == "" {
		return
	}
	if native.buffers != nil {
		*native.buffers += computeBuffer(line)
	}
	switch {
	case native.level >= logError && native.capture != nil:
		*native.capture = append(*native.capture, line)
	case native.level >= logError:
		slog.Error(line, "from", "llama.cpp")
		return
	}
	if slog.Default().Enabled(context.Background(), slog.LevelDebug) {
		slog.Debug(line, "from", "llama.cpp")
	}
}

// captureErrors keeps the libraries' error lines until the returned function is called, which gives them.
func (l *Library) captureErrors() func() []string {
	var lines []string
	native.Lock()
	native.capture = &lines
	native.Unlock()
	return func() []string {
		native.Lock()
		defer native.Unlock()
		native.capture = nil
		return lines
	}
}

// reason picks the line of a failure that says most: the longest tail after a function's name, or the fallback.
func reason(lines []string, fallback string) string {
	best := ""
	for _, line := range lines {
		for {
			head, tail, ok := strings.Cut(line, ": ")
			if !ok || strings.ContainsAny(head, " '\"") {
				break
			}
			line = tail
		}
		line = strings.TrimPrefix(line, "error loading model: ")
		if strings.HasPrefix(line, "failed to load model") {
			continue
		}
		if len(line) > len(best) {
			best = line
		}
	}
	if best == "" {
		return fallback
	}
	return best
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
