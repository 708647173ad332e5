//go:build unix

package safe

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/core/gguf"
	"github.com/bmoe/bmoe/tests/synth"
)

// moe is the model of most tests: 20 MB of experts.
const moe = "qwen3moe-20m"

var written sync.Map // name of a preset -> func() ([]string, error)

// model is a preset's files, written once for all tests. No test changes them.
func model(t testing.TB, name string) []string {
	t.Helper()
	write, _ := written.LoadOrStore(name, sync.OnceValues(func() ([]string, error) {
		spec, err := synth.Named(name)
		if err != nil {
			return nil, err
		}
		return synth.Write(t.Context(), filepath.Join(scratch, name+".gguf"), spec, nil)
	}))
	files, err := write.(func() ([]string, error))()
	require.NoError(t, err)
	return files
}

// copied is a file's first n bytes under another name, or all of it for n < 0.
func copied(t testing.TB, path, to string, n int64) string {
	t.Helper()
	// A program that is started meanwhile would hold the copy open for writing, and nobody could run it: "text file busy".
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	in, err := os.Open(path)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.Create(to)
	require.NoError(t, err)
	if n < 0 {
		_, err = io.Copy(out, in)
	} else {
		_, err = io.CopyN(out, in, n)
	}
	require.NoError(t, errors.Join(err, out.Close()))
	return to
}

// opened is a model's header.
func opened(t testing.TB, path string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	return f
}

// header is the bytes of a file before its tensors' data.
func header(t testing.TB, path string) []byte {
	t.Helper()
	b := make([]byte, opened(t, path).Shards[0].DataStart)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = io.ReadFull(f, b)
	require.NoError(t, err)
	return b
}

// little is n as a file has it.
func little[T uint32 | uint64](n T) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, n)
	if err != nil {
		panic(err)
	}
	return b
}
