package llama

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmoe/bmoe/platform/dynlib"
)

// TestCommonIsOpenedFromTheLibrariesFolderAlone: missing there it is missing, and what is no library says so.
func TestCommonIsOpenedFromTheLibrariesFolderAlone(t *testing.T) {
	l := library(t)
	_, err := l.OpenCommon()
	require.NoError(t, err)

	elsewhere := &Library{Dir: t.TempDir()}
	_, err = elsewhere.OpenCommon()
	require.ErrorIs(t, err, ErrMissing)
	assert.ErrorContains(t, err, elsewhere.Dir)

	require.NoError(t, os.WriteFile(filepath.Join(elsewhere.Dir, dynlib.Name("bmoe-common")), []byte("no library"), 0o600))
	_, err = elsewhere.OpenCommon()
	assert.ErrorContains(t, err, "does not load")
}

// TestProjectionRefusesWhatCannotBe: each with a reason, none with a crash.
func TestProjectionRefusesWhatCannotBe(t *testing.T) {
	common, err := library(t).OpenCommon()
	require.NoError(t, err)
	good := SessionShape{Path: small(t), Context: ContextOptions{Length: 64, Ubatch: 64, OutputsMax: 1, TypeK: 1, TypeV: 1, FlashAttn: -1}}
	memory, err := common.Project(good)
	require.NoError(t, err)
	require.Len(t, memory, 1)
	assert.Positive(t, memory[0].Compute)

	long := make([]byte, 300)
	for i := range long {
		long[i] = 'x'
	}
	for want, change := range map[string]func(*SessionShape){
		"there is no device GPU7": func(s *SessionShape) { s.Devices = []string{"GPU7"} },
		"there is no buffer type": func(s *SessionShape) { s.Placement.Overrides = []NamedOverride{{"x", "GPU7"}} },
		"longer than can be passed on": func(s *SessionShape) {
			s.Placement.Overrides = []NamedOverride{{string(long), "CPU"}}
		},
		"longer than llama.cpp takes": func(s *SessionShape) { s.IntKV = string(long) },
		"failed to open":              func(s *SessionShape) { s.Path += ".gone" },
	} {
		s := good
		change(&s)
		_, err := common.Project(s)
		assert.ErrorContains(t, err, want)
	}
}
