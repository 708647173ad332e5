package safe

import (
	"debug/elf"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A library looks for what it needs in its own folder. A path that ends in a colon, as cmake writes it if one lets it, has the
// loader look in the working directory too: a libvulkan.so.1 that lies there would be run.
func TestLibrariesLookInTheirOwnFolderAlone(t *testing.T) {
	t.Parallel()
	for _, path := range libs(t, filepath.Dir(cli)) {
		f, err := elf.Open(path)
		require.NoError(t, err)
		defer f.Close()
		for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
			paths, err := f.DynString(tag)
			require.NoError(t, err)
			for _, p := range paths {
				assert.Equal(t, "$ORIGIN", p, path)
			}
		}
	}
}
