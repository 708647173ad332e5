package code

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/ci/console"
)

const (
	// binding is the package that opens libllama. A test that has it inside runs native code, or may.
	binding = "github.com/bmoe/bmoe/core/llama"

	// A test of the whole that asks where its own program lies is looking for the product's program beside it.
	whole = "github.com/bmoe/bmoe/tests/"
	asks  = "github.com/bmoe/bmoe/platform/process"
)

// Suites are the packages that have tests, split by how these are run.
type Suites struct {
	Go     []string // Go alone: run with the race detector
	Native []string // with native code, or running the product: run beside the libraries, as the product is
}

// Suites asks the go command which packages have tests and what is in them.
func (r Repo) Suites(ctx context.Context) (Suites, error) {
	lines, err := r.lines(ctx, nil, "list", "-test", "-f", `{{if .ForTest}}{{else if eq .Name "main"}}{{.ImportPath}}={{join .Deps ","}}{{end}}`, "./...")
	if err != nil {
		return Suites{}, err
	}
	return split(lines), nil
}

// split reads lines of the form PACKAGE.test=DEPENDENCY,DEPENDENCY.
func split(lines []string) Suites {
	var s Suites
	for _, line := range lines {
		name, deps, _ := strings.Cut(line, "=")
		pkg, isTest := strings.CutSuffix(name, ".test")
		switch {
		case !isTest:
		case has(deps, binding), strings.HasPrefix(pkg, whole) && has(deps, asks):
			s.Native = append(s.Native, pkg)
		default:
			s.Go = append(s.Go, pkg)
		}
	}
	return s
}

// has knows a package also as rebuilt for a test: "path [path.test]".
func has(deps, pkg string) bool {
	return slices.ContainsFunc(strings.Split(deps, ","), func(dep string) bool {
		dep, _, _ = strings.Cut(dep, " ")
		return dep == pkg
	})
}

// Test runs every test there is, the native ones out of bin.
func (r Repo) Test(ctx context.Context, bin string) error {
	s, err := r.Suites(ctx)
	if err != nil {
		return err
	}
	var failed []error
	if len(s.Go) > 0 {
		console.Say("testing %d packages of Go alone, with the race detector", len(s.Go))
		failed = append(failed, r.run(ctx, []string{"CGO_ENABLED=1"}, append([]string{"test", "-race"}, s.Go...)...))
	}
	if len(s.Native) > 0 {
		console.Say("testing %d packages with native code, beside the libraries", len(s.Native))
		failed = append(failed, r.Native(ctx, bin, nil, append([]string{"-timeout=40m"}, s.Native...)...))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	console.Say("all %d packages with tests passed", len(s.Go)+len(s.Native))
	return nil
}

// Native runs go test with args, each test's program lying in bin while it runs: the product loads libraries from its own folder
// alone, and so do its tests. One package after the other, since each wants the processor's every core.
func (r Repo) Native(ctx context.Context, bin string, env []string, args ...string) error {
	return r.beside(ctx, []string{bin}, bin, slices.Concat(pure, env), args...)
}

// Foreign is another system whose programs can be run here.
type Foreign struct {
	Platform
	Bin     string   // folder of that system's libraries
	Through string   // program that runs its programs, "" where the kernel knows what does
	Env     []string // of everything that is run
}

// TestForeign builds the programs for another system and runs the tests of the product's packages there, with these flags. What
// builds and releases the product runs on this system, and is left out.
func (r Repo) TestForeign(ctx context.Context, f Foreign, flags ...string) error {
	if err := r.run(ctx, f.env(), "build", "-trimpath", "-o", f.Bin+string(filepath.Separator), "./cmd/..."); err != nil {
		return err
	}
	words := []string{f.Bin}
	if f.Through != "" {
		words = []string{"-through", f.Through, f.Bin}
	}
	args := append(slices.Clip(flags), "-timeout=40m", "./backends/...", "./cmd/...", "./core/...", "./platform/...", "./tests/...")
	return r.beside(ctx, words, f.Bin, slices.Concat(f.env(), f.Env), args...)
}

// beside runs go test with the program of the same name between it and each test.
func (r Repo) beside(ctx context.Context, words []string, bin string, env []string, args ...string) error {
	program := filepath.Join(r.Root, "build", "beside")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if err := r.run(ctx, pure, "build", "-o", program, "./ci/beside"); err != nil {
		return err
	}
	defer sweep(bin)
	exec := quote(append([]string{program}, words...)...)
	return r.run(ctx, env, slices.Concat([]string{"test", "-p=1", "-exec=" + exec}, args)...)
}

// quote makes one flag of a command whose words may hold spaces, as the go command splits it.
func quote(words ...string) string {
	for i, w := range words {
		if strings.ContainsAny(w, " \t") {
			words[i] = `"` + w + `"`
		}
	}
	return strings.Join(words, " ")
}

// sweep removes the test programs from bin.
func sweep(bin string) {
	for _, pattern := range []string{"*.test", "*.test.exe"} {
		left, _ := filepath.Glob(filepath.Join(bin, pattern)) // the pattern is right, which is all that could fail
		for _, f := range left {
			_ = os.Remove(f) // one that still runs is replaced by the next run
		}
	}
}
