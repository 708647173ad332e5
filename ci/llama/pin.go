package llama

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Pin says which llama.cpp this is built on. It lies in llama.cpp/pin.json.
type Pin struct {
	Tag        string `json:"tag"`        // the release, in the upstream repository
	Tree       string `json:"tree"`       // git's id of its whole content: what is checked, wherever the source comes from
	Repository string `json:"repository"` // where git finds it
	NPM        string `json:"npm"`        // a package that carries the same source, for people who cannot reach the repository
	Bundle     string `json:"bundle"`     // the git bundle inside that package
}

var treeID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// ReadPin reads the pin of the checkout at root.
func ReadPin(root string) (Pin, error) {
	path := filepath.Join(root, "llama.cpp", "pin.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return Pin{}, err
	}
	var p Pin
	if err := json.Unmarshal(data, &p); err != nil {
		return Pin{}, fmt.Errorf("%s: %w", path, err)
	}
	if !treeID.MatchString(p.Tree) {
		return Pin{}, fmt.Errorf("%s: tree %q is not a git tree id of 40 hexadecimal digits", path, p.Tree)
	}
	if p.Tag == "" || p.Repository == "" || p.NPM == "" || p.Bundle == "" {
		return Pin{}, fmt.Errorf("%s: tag, repository, npm and bundle must all be given", path)
	}
	return p, nil
}
