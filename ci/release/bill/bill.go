// Package bill writes an archive's bill of materials: what it is made of, by version and hash, as CycloneDX 1.5.
//
// All of it is read from the archive: the manifest says what llama.cpp the libraries are, the programs which Go modules they
// have inside. The same archive gives the same bill.
package bill

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmoe/bmoe/ci/release/packed"
	"github.com/bmoe/bmoe/core/manifest"
)

type document struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Serial     string      `json:"serialNumber"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Write writes the bill of the archive to the file at path.
func Write(archive, path string) error {
	a, err := packed.Open(archive)
	if err != nil {
		return err
	}
	d, err := of(a)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	raw, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	d.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	d.Metadata.Component.Name = filepath.Base(archive)
	d.Metadata.Component.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func of(a packed.Archive) (document, error) {
	f, ok := a.File(manifest.Name)
	if !ok {
		return document{}, fmt.Errorf("there is no %s in it", manifest.Name)
	}
	var m manifest.Manifest
	if err := json.Unmarshal(f.Data, &m); err != nil {
		return document{}, fmt.Errorf("%s: %w", manifest.Name, err)
	}
	d := document{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{component{Type: "application", Version: m.Version}}}
	d.Components = append(d.Components, component{Type: "library", Name: "llama.cpp", Version: m.Llama.Release,
		PURL:       "pkg:github/ggml-org/llama.cpp@" + m.Llama.Release,
		Properties: []property{{"git:tree", m.Llama.Tree}, {"compiler", m.Compiler.CXX}}})

	seen := map[string]bool{}
	add := func(path, version string) {
		if !seen[path] {
			seen[path] = true
			d.Components = append(d.Components, component{Type: "library", Name: path, Version: version, PURL: "pkg:golang/" + path + "@" + version})
		}
	}
	for _, f := range a.Files {
		info, err := buildinfo.Read(bytes.NewReader(f.Data))
		if err != nil {
			continue // no Go program
		}
		add("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
		for _, dep := range info.Deps {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			add(dep.Path, dep.Version)
		}
	}
	for _, f := range m.Files {
		d.Components = append(d.Components, component{Type: "file", Name: f.Name, Hashes: []hash{{"SHA-256", f.SHA256}}})
	}
	return d, nil
}
