package release

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/backends"
	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/ci/release/packed"
	"github.com/bmoe/bmoe/core/manifest"
)

const (
	// largest is what an archive may have, in bytes.
	largest = 60 << 20
)

// newest are the versions of the C and C++ libraries that a Linux archive may ask for: Debian 12's.
var newest = map[string]string{"GLIBC": "2.36", "GLIBCXX": "3.4.30", "CXXABI": "1.3.13"}

// outside are the libraries that a system itself has, by GOOS: all that an archive may need and not bring.
var outside = map[string][]string{
	"linux": {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libstdc++.so.6", "libgcc_s.so.1",
		"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"},
	"windows": {"kernel32.dll", "msvcrt.dll", "advapi32.dll", "user32.dll", "shell32.dll", "ws2_32.dll", "bcrypt.dll", "bcryptprimitives.dll", "ntdll.dll", "ole32.dll", "setupapi.dll"},
	"darwin":  {"libSystem.B.dylib", "libc++.1.dylib", "libobjc.A.dylib", "Foundation", "Metal", "MetalKit", "Accelerate", "CoreFoundation", "Security"},
	"android": {"libc.so", "libm.so", "libdl.so", "liblog.so", "libandroid.so"},
}

// held are the files of every archive, besides the libraries and the program.
var held = []string{manifest.Name, "LICENSE", "THIRD_PARTY_NOTICES", "README.md", "INSTALL.txt", "OWN-MODULES.md", "man/bmoe-cli.1",
	"completions/bmoe-cli.bash", "completions/_bmoe-cli", "completions/bmoe-cli.fish", "completions/bmoe-cli.ps1"}

// Check looks into every archive in the folder of what is to be published, and prints a table of them.
func (r *Release) Check() error {
	var parts []*part
	for _, s := range systems {
		p := &part{system: s}
		if _, err := r.find(s); err != nil {
			p.missing = errors.New("not made here")
		}
		parts = append(parts, p)
	}
	whole := slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return p.missing != nil })
	if len(whole) == 0 {
		return fmt.Errorf("there is no archive in %s: make them with go tool mage release:snapshot", r.Dist())
	}
	failed := r.check(whole)
	table(os.Stdout, parts)
	return failed
}

// find is the system's archive.
func (r *Release) find(s system) (string, error) {
	for _, suffix := range []string{".tar.gz", ".zip"} {
		found, err := filepath.Glob(filepath.Join(r.Dist(), "bmoe-*-"+s.OS+"-"+s.Arch+suffix))
		if err != nil {
			return "", err
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return "", fmt.Errorf("%s has %d archives for %s", r.Dist(), len(found), s)
		}
	}
	return "", fmt.Errorf("%s has no archive for %s", r.Dist(), s)
}

// check looks into the archive of each part and tells all that is wrong.
func (r *Release) check(parts []*part) error {
	var failed []error
	for _, p := range parts {
		file, err := r.find(p.system)
		if err == nil {
			err = p.look(file)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p, err))
		}
	}
	return errors.Join(failed...)
}

// look checks one archive: its size, what is in it, and what that needs from outside.
func (p *part) look(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	p.archive, p.size = file, info.Size()
	console.Say("checking %s", filepath.Base(file))
	a, err := packed.Open(file)
	if err != nil {
		return err
	}
	var wrong []error
	fault := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if p.size > largest {
		fault("it has %d bytes, more than %d", p.size, largest)
	}
	if want := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".zip"), ".tar.gz"); a.Folder != want {
		fault("its folder is %s, not %s", a.Folder, want)
	}
	program := "bmoe-cli"
	if p.OS == "windows" {
		program += ".exe"
	}
	for _, name := range append([]string{program}, held...) {
		if f, ok := a.File(name); !ok {
			fault("%s is not in it", name)
		} else if name == program && p.OS != "windows" && f.Mode&0o111 != 0o111 {
			fault("%s can't be run: its mode is %v", name, f.Mode)
		}
	}
	m, err := p.sealed(a)
	if err != nil {
		fault("%w", err)
	}
	p.modules, p.leftOut = nil, nil
	for _, module := range m.Modules {
		if module.Name != backends.Base.Name {
			p.modules = append(p.modules, module.Name)
		}
	}
	for _, l := range m.LeftOut {
		p.leftOut = append(p.leftOut, l.Name+": "+l.Why)
	}
	for _, f := range a.Files {
		if err := p.library(a, f); err != nil {
			fault("%s: %w", f.Name, err)
		}
	}
	slices.Sort(p.needs)
	p.needs = slices.Compact(p.needs)
	return errors.Join(wrong...)
}

// sealed compares the archive's files with its manifest.
func (p *part) sealed(a packed.Archive) (manifest.Manifest, error) {
	var m manifest.Manifest
	f, ok := a.File(manifest.Name)
	if !ok {
		return m, nil // said already
	}
	if err := json.Unmarshal(f.Data, &m); err != nil {
		return m, fmt.Errorf("%s: %w", manifest.Name, err)
	}
	var wrong []error
	if m.System != p.String() || m.Version == "" {
		wrong = append(wrong, fmt.Errorf("the manifest is of version %q for %q", m.Version, m.System))
	}
	listed := map[string]string{manifest.Name: ""}
	for _, f := range m.Files {
		listed[f.Name] = f.SHA256
	}
	for _, f := range a.Files {
		want, ok := listed[f.Name]
		delete(listed, f.Name)
		sum := sha256.Sum256(f.Data)
		switch {
		case f.Name == manifest.Name:
		case !ok:
			wrong = append(wrong, fmt.Errorf("%s is not in the manifest", f.Name))
		case hex.EncodeToString(sum[:]) != want:
			wrong = append(wrong, fmt.Errorf("%s is not what the manifest says", f.Name))
		}
	}
	for name := range listed {
		wrong = append(wrong, fmt.Errorf("the manifest has %s, which is not there", name))
	}
	return m, errors.Join(wrong...)
}

// library checks a library or program: what it needs must be in the archive or the system's own, it must look for it in its own
// folder, and it must not ask for a C library newer than the oldest system has.
func (p *part) library(a packed.Archive, f packed.File) error {
	needs, path, symbols, err := needed(f.Data)
	if err != nil || needs == nil {
		return nil // a text, or a program that needs nothing
	}
	allowed := outside[p.OS]
	for _, m := range backends.Accelerators {
		if strings.Contains(f.Name, m.Target) {
			allowed = append(slices.Clip(allowed), m.Loader...)
		}
	}
	var wrong []error
	own := false
	for _, name := range needs {
		if _, ok := a.File(name); ok {
			own = true
			continue
		}
		p.needs = append(p.needs, name)
		fits := func(s string) bool { return strings.EqualFold(s, name) }
		if !slices.ContainsFunc(allowed, fits) && !strings.HasPrefix(strings.ToLower(name), "api-ms-win-crt-") {
			wrong = append(wrong, fmt.Errorf("it needs %s, which is neither in the archive nor the system's own", name))
		}
	}
	if own && p.OS != "windows" && !slices.Contains([]string{"$ORIGIN", "@loader_path"}, path) {
		wrong = append(wrong, fmt.Errorf("it looks for libraries in %q, not in its own folder", path))
	}
	for _, symbol := range symbols {
		of, version, _ := strings.Cut(symbol, "_")
		if of == "GLIBC" && older(p.glibc, version) {
			p.glibc = version
		}
		if top, ok := newest[of]; ok && older(top, version) {
			wrong = append(wrong, fmt.Errorf("it needs %s %s, newer than %s", of, version, top))
		}
	}
	return errors.Join(wrong...)
}

// needed are the libraries that a binary asks the loader for, where it has the loader look, and the versions of symbols that it
// asks for, such as GLIBC_2.34. The error says that the bytes are no binary.
func needed(data []byte) (names []string, search string, versions []string, err error) {
	r := bytes.NewReader(data)
	if f, err := elf.NewFile(r); err == nil {
		defer f.Close()
		names, _ = f.ImportedLibraries() // an error says there is no dynamic section: nothing is needed
		for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
			if paths, err := f.DynString(tag); err == nil && len(paths) > 0 {
				search = strings.Join(paths, ":")
				break
			}
		}
		wants, _ := f.DynamicVersionNeeds()
		for _, v := range wants {
			for _, n := range v.Needs {
				versions = append(versions, n.Dep)
			}
		}
		return names, search, versions, nil
	}
	if f, err := pe.NewFile(r); err == nil {
		defer f.Close()
		names, err := f.ImportedLibraries()
		if names == nil {
			names, err = dlls(f)
		}
		return names, "", nil, err
	}
	f, err := macho.NewFile(r)
	if err != nil {
		return nil, "", nil, err
	}
	defer f.Close()
	all, err := f.ImportedLibraries()
	for _, name := range all {
		names = append(names, path.Base(name))
	}
	for _, l := range f.Loads {
		if r, ok := l.(*macho.Rpath); ok {
			search = r.Path
		}
	}
	return names, search, nil, err
}

// dlls are the libraries that a DLL or EXE imports from. The standard library lists symbols as name:library.
func dlls(f *pe.File) ([]string, error) {
	symbols, err := f.ImportedSymbols()
	var names []string
	for _, s := range symbols {
		if _, name, ok := strings.Cut(s, ":"); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, err
}

// older says that version a, such as 2.9, comes before b, such as 2.36. No version comes before every other.
func older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range y {
		if i >= len(x) {
			return true
		}
		m, _ := strconv.Atoi(x[i])
		n, _ := strconv.Atoi(y[i])
		if m != n {
			return m < n
		}
	}
	return false
}

// table prints what became of each system.
func table(w io.Writer, parts []*part) {
	for _, p := range parts {
		if p.missing != nil {
			fmt.Fprintf(w, "%-15s no archive: %v\n", p, p.missing)
			continue
		}
		fmt.Fprintf(w, "%-15s %s, %.1f MiB\n", p, filepath.Base(p.archive), float64(p.size)/(1<<20))
		fmt.Fprintf(w, "%15s modules: %s\n", "", strings.Join(p.modules, ", "))
		for _, l := range p.leftOut {
			fmt.Fprintf(w, "%15s left out: %s\n", "", l)
		}
		fmt.Fprintf(w, "%15s needs: %s\n", "", strings.Join(p.needs, ", "))
		if p.glibc != "" {
			fmt.Fprintf(w, "%15s glibc: %s or newer\n", "", p.glibc)
		}
	}
}
