// Command hooks is what the release tool calls while it packs: seal, when a program is built, and sbom, when an archive is.
//
//	hooks seal FOLDER PROGRAM VERSION   adds the program and the version to the folder's manifest
//	hooks sbom ARCHIVE DOCUMENT         writes what the archive is made of, as CycloneDX
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/ci/release/bill"
	"github.com/bmoe/bmoe/core/manifest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 4 && args[0] == "seal":
		return seal(args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "sbom":
		return bill.Write(args[1], args[2])
	}
	return errors.New("usage: hooks seal FOLDER PROGRAM VERSION, or hooks sbom ARCHIVE DOCUMENT")
}

// seal puts the program into the manifest of the folder that it will lie in.
func seal(folder, program, version string) error {
	m, err := manifest.Read(folder)
	if err != nil {
		return err
	}
	f, err := os.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return err
	}
	name := filepath.Base(program)
	m.Version = version
	m.Files = slices.DeleteFunc(m.Files, func(f manifest.File) bool { return f.Name == name })
	m.Files = append(m.Files, manifest.File{Name: name, Size: size, SHA256: hex.EncodeToString(h.Sum(nil))})
	slices.SortFunc(m.Files, func(a, b manifest.File) int { return strings.Compare(a.Name, b.Name) })
	return m.Write(folder)
}
