package notices

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALicenceIsFoundOrMissed(t *testing.T) {
	t.Parallel()
	bare, full := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"LICENSE.txt": "the terms\r\nin full\n", "NOTICE": "and a notice\n", "main.go": "package main\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(full, name), []byte(text), 0o644))
	}
	require.NoError(t, os.Mkdir(filepath.Join(bare, "LICENSES"), 0o755))

	text, err := part{"x", []string{filepath.Join(bare, "absent"), bare, full}, ""}.licence()
	require.NoError(t, err)
	assert.Equal(t, "the terms\nin full\n\nand a notice", text)

	_, err = part{"x v1", []string{bare}, ""}.licence()
	require.ErrorContains(t, err, "x v1 has no licence file")
}

func TestTheProgramsModulesAreListedOnceForAllPlatforms(t *testing.T) {
	t.Parallel()
	parts, err := linked(t.Context(), filepath.Join("..", ".."))
	require.NoError(t, err)
	count := map[string]int{}
	for _, p := range parts {
		name, version, found := strings.Cut(p.name, " ")
		require.True(t, found && version != "", p.name)
		count[name]++
	}
	for name, n := range count {
		assert.Equal(t, 1, n, name)
	}
	assert.Contains(t, count, "github.com/ebitengine/purego")
	assert.Contains(t, count, "github.com/inconshreveable/mousetrap", "linked on Windows alone")
	assert.NotContains(t, count, "github.com/stretchr/testify", "tests are no part of the product")
	assert.NotContains(t, count, "github.com/bmoe/bmoe")
}
