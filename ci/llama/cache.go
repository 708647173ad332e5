package llama

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bmoe/bmoe/backends"
)

// CacheVariable names the environment variable that moves the cache.
const CacheVariable = "BMOE_CACHE_DIR"

// What lies in the cache, besides the folders of builds under way.
const (
	kept     = "llama.cpp"
	lockFile = "build.lock"
)

// CacheDir is where built llama.cpp parts are kept between checkouts.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no place for the build cache: %w; set %s", err, CacheVariable)
	}
	return filepath.Join(dir, "bmoe"), nil
}

// recipe is everything that the built bytes of a module depend on. Its hash is the module's key in the cache.
type recipe struct {
	Tree      string // of the source
	System    string // GOOS/GOARCH
	Toolchain Toolchain
	Options   []string // of cmake
	Target    string   // of ninja
	Layout    int      // of what is kept in the cache

	Own map[string]string `json:",omitempty"` // sources of ours by name, what they hash to
}

// layout changes when what a cached folder must hold does.
const layout = 1

func newRecipe(pin Pin, tc Toolchain, m backends.Module) recipe {
	goos, goarch := tc.System()
	return recipe{
		Tree:      pin.Tree,
		System:    goos + "/" + goarch,
		Toolchain: tc,
		Options:   m.Configured(goos),
		Target:    m.Target,
		Layout:    layout,
		Own:       hashes(m.Own),
	}
}

// hashes are those of the files in a folder, none if there is no folder.
func hashes(folder fs.FS) map[string]string {
	if folder == nil {
		return nil
	}
	sums := map[string]string{}
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(folder, name)
		sums[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		panic(err) // they are embedded
	}
	return sums
}

func (r recipe) key() string {
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and numbers only: cannot fail
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// place is the module's folder in the cache.
func place(cache string, pin Pin, tc Toolchain, m backends.Module) string {
	return filepath.Join(cache, kept, pin.Tag, m.Name+"-"+newRecipe(pin, tc, m).key())
}

// locked runs do while no other process that uses this cache builds. waiting is called if that takes a wait.
func locked(ctx context.Context, cache string, waiting func(), do func() error) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(cache, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer f.Close() // and with it the lock
	if err := lock(ctx, f, waiting); err != nil {
		return fmt.Errorf("%s cannot be locked: %w", f.Name(), err)
	}
	return do()
}
