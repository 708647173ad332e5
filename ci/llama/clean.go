package llama

import (
	"os"
	"path/filepath"

	"github.com/bmoe/bmoe/ci/console"
)

// Clean removes what was built in the checkout and the source that was fetched into it; with all, what is kept outside too.
func Clean(root, built string, all bool) error {
	for _, dir := range []string{built, filepath.Join(root, "llama.cpp", "source")} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	if all {
		return forget(cache)
	}
	if _, err := os.Stat(cache); err == nil {
		console.Say("built llama.cpp parts are kept in %s for the next build; to remove them too: go tool mage clean -cache", cache)
	}
	return nil
}

// forget removes what builds keep in the cache and nothing else: the folder may be one that a person named.
func forget(cache string) error {
	for _, pattern := range []string{kept, "building-*", lockFile} {
		ours, err := filepath.Glob(filepath.Join(cache, pattern))
		if err != nil {
			return err
		}
		for _, path := range ours {
			console.Say("removing %s", path)
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	_ = os.Remove(cache) // stays where it holds something else
	return nil
}
