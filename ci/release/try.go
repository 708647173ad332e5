package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bmoe/bmoe/ci/console"
	"github.com/bmoe/bmoe/ci/tools"
)

// What a try-out takes from the system.
var (
	debootstrap = tools.Tool{For: "making a bare Debian", Names: []string{"debootstrap"}, Packages: map[string]string{
		"apt": "debootstrap", "dnf": "debootstrap", "pacman": "debootstrap", "brew": "-", "winget": "-"}}
	rpm = tools.Tool{For: "installing the rpm", Names: []string{"rpm"}, Packages: map[string]string{
		"apt": "rpm", "dnf": "rpm", "pacman": "rpm-tools", "brew": "rpm", "winget": "-"}}
)

const (
	suite    = "bookworm" // the oldest system that an archive is for
	person   = "1000"     // an ordinary user
	home     = "home/person"
	greeting = "Hello"
)

// Try unpacks the archive of this machine's system in a bare Debian and runs it there as an ordinary user, in every way that
// people do, and then installs, upgrades and removes the packages. It needs root, for the Debian's own root.
func (r *Release) Try(ctx context.Context) error {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return errors.New("the archive is tried in a root of its own, which takes Linux and the rights of root")
	}
	if err := tools.Need(debootstrap, rpm); err != nil {
		return err
	}
	host := slices.IndexFunc(systems, func(s system) bool { return s.OS == runtime.GOOS && s.Arch == runtime.GOARCH })
	archive, err := r.find(systems[host])
	if err != nil {
		return fmt.Errorf("%w; make it with go tool mage release:snapshot", err)
	}
	t := trial{Release: r, root: filepath.Join(r.work(), "root"), folder: strings.TrimSuffix(filepath.Base(archive), ".tar.gz")}
	if err := t.prepare(ctx, archive); err != nil {
		return err
	}
	failed := errors.Join(t.people(ctx), t.deb(ctx), t.rpm(ctx))
	if err := t.clock(ctx); err != nil {
		failed = errors.Join(failed, err)
	}
	if failed == nil {
		console.Say("%s runs, and its packages come and go", filepath.Base(archive))
	}
	return failed
}

// trial is a bare system with an archive unpacked in it.
type trial struct {
	*Release
	root   string // its root folder
	folder string // the archive's, in the person's home
}

// prepare makes the bare system once, and puts a person with the archive and a model into it.
func (t *trial) prepare(ctx context.Context, archive string) error {
	base := filepath.Join(t.work(), suite+".tar")
	if _, err := os.Stat(base); err != nil {
		mirror, err := mirror(ctx)
		if err != nil {
			return err
		}
		console.Say("making a bare Debian from %s", suite)
		fresh := filepath.Join(t.work(), "fresh")
		if err := os.RemoveAll(fresh); err != nil {
			return err
		}
		out, err := exec.CommandContext(ctx, debootstrap.Path(), "--variant=minbase", "--include=libstdc++6", suite, fresh, mirror).CombinedOutput()
		if err != nil {
			return fmt.Errorf("debootstrap: %w; it ended with:\n%s", err, last(out))
		}
		if err := t.do(ctx, "tar", "--one-file-system", "-C", fresh, "-cf", base+".part", "."); err != nil {
			return err
		}
		if err := errors.Join(os.Rename(base+".part", base), os.RemoveAll(fresh)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(t.root); err != nil {
		return err
	}
	model := filepath.Join(t.root, home, "model.gguf")
	if err := os.MkdirAll(filepath.Dir(model), 0o755); err != nil {
		return err
	}
	for _, step := range [][]string{
		{"tar", "-C", t.root, "-xf", base},
		{"tar", "-C", filepath.Dir(model), "-xzf", archive},
		{"go", "run", "./tests/synth/cmd/bmoe-synth", "-model", "qwen3moe-20m", "-o", model},
		{"chown", "-R", person + ":" + person, filepath.Dir(model)},
	} {
		if err := t.do(ctx, step[0], step[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// mirror is where this machine's own apt gets the suite.
func mirror(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages").Output()
	for line := range strings.Lines(string(out)) {
		if name, uri, _ := strings.Cut(strings.TrimSpace(line), " "); name == suite && err == nil {
			return uri, nil
		}
	}
	return "https://deb.debian.org/debian", nil
}

// people runs the program as they do.
func (t *trial) people(ctx context.Context) error {
	at := "/" + home
	run := " -m " + at + "/model.gguf --auto -p " + greeting + " -n 8 -c 128"
	odd := at + "/Größe und Ärger"
	return t.all(ctx, []attempt{
		{what: "it tells its version, and that it is whole", shell: "cd " + t.folder + " && ./bmoe-cli --version -v", says: "files are as they were released"},
		{what: "it runs where it was unpacked", shell: "cd " + t.folder + " && ./bmoe-cli" + run, says: "tok/s"},
		{what: "from another working directory", shell: "cd / && " + at + "/" + t.folder + "/bmoe-cli" + run, says: "tok/s"},
		{what: "through a link in another folder", shell: "mkdir -p bin && ln -s ../" + t.folder + "/bmoe-cli bin/b && cd /tmp && " + at + "/bin/b" + run, says: "tok/s"},
		{what: "from a path with spaces and letters beyond ASCII", shell: "cp -r " + t.folder + " '" + odd + "' && '" + odd + "/bmoe-cli'" + run, says: "tok/s"},
		{what: "from a mount that can't be written", before: "mkdir -p /mnt/bmoe && mount --bind " + at + "/" + t.folder + " /mnt/bmoe && mount -o remount,ro,bind /mnt/bmoe",
			shell: "! touch /mnt/bmoe/x 2>/dev/null && /mnt/bmoe/bmoe-cli" + run, says: "tok/s"},
		{what: "alone, it says what is missing", shell: "mkdir -p lone && cp " + t.folder + "/bmoe-cli lone && ! lone/bmoe-cli" + run, says: "the llama.cpp libraries are missing"},
		{what: "a changed file is named", shell: "cp -r " + t.folder + " hurt && echo >> hurt/README.md && rm hurt/LICENSE && ! hurt/bmoe-cli --version -v", says: "README.md is changed, LICENSE is missing"},
		{what: "a module that is none is passed over with a line", shell: "cp -r " + t.folder + " more && echo nothing > more/libggml-mine.so && more/bmoe-cli --list-devices", says: "libggml-mine.so does not load"},
	})
}

// deb installs, upgrades and removes the package, after which nothing of it is left.
func (t *trial) deb(ctx context.Context) error {
	found, err := filepath.Glob(filepath.Join(t.Dist(), "bmoe_*_"+runtime.GOARCH+".deb"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%s has %d debs for this machine, not one", t.Dist(), len(found))
	}
	if err := copyFile(found[0], filepath.Join(t.root, "bmoe.deb"), 0o644); err != nil {
		return err
	}
	before, err := t.listing()
	if err != nil {
		return err
	}
	later := "rm -rf /x && dpkg-deb -R /bmoe.deb /x && sed -i 's/^Version:.*/Version: 99.0/' /x/DEBIAN/control && rm /x/usr/lib/bmoe/INSTALL.txt && " +
		"echo new > /x/usr/lib/bmoe/NEW && dpkg-deb -b /x /later.deb >/dev/null && rm -rf /x && dpkg -i /later.deb && rm /later.deb"
	err = t.all(ctx, []attempt{
		{what: "the deb installs", root: true, shell: "dpkg -i /bmoe.deb", says: "Setting up bmoe"},
		{what: "it runs for everyone", shell: "bmoe-cli --version -v", says: "files are as they were released"},
		{what: "it runs a model", shell: "bmoe-cli -m model.gguf --auto -p " + greeting + " -n 8 -c 128", says: "tok/s"},
		{what: "its manual page and completions are where they are looked for", shell: "cat /usr/share/man/man1/bmoe-cli.1 /usr/share/bash-completion/completions/bmoe-cli /usr/share/zsh/site-functions/_bmoe-cli /usr/share/fish/vendor_completions.d/bmoe-cli.fish", says: ".SH NAME"},
		{what: "bash completes its flags", shell: `bash -c '_get_comp_words_by_ref() { cur=--cache-ty; prev=bmoe-cli; words=(bmoe-cli --cache-ty); cword=1; }
			. /usr/share/bash-completion/completions/bmoe-cli; COMP_TYPE=9; COMP_LINE="bmoe-cli --cache-ty"; COMP_POINT=19
			__start_bmoe-cli bmoe-cli; echo "${COMPREPLY[@]}"'`, says: "--cache-type-"},
		{what: "a later deb takes its place", root: true, shell: later + " && test -e /usr/lib/bmoe/NEW && ! test -e /usr/lib/bmoe/INSTALL.txt", says: "Setting up bmoe (99.0)"},
		{what: "it is removed", root: true, shell: "dpkg -P bmoe", says: "Purging configuration files for bmoe", or: "Removing bmoe"},
	})
	return errors.Join(err, t.same(before))
}

// rpm does the same with the other package. There is no database of rpms in a Debian, so what it depends on is not asked for.
func (t *trial) rpm(ctx context.Context) error {
	found, err := filepath.Glob(filepath.Join(t.Dist(), "bmoe-*.rpm"))
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	found = slices.DeleteFunc(found, func(f string) bool { return !strings.HasSuffix(f, "."+arch+".rpm") })
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%s has %d rpms for this machine, not one", t.Dist(), len(found))
	}
	database := filepath.Join(t.work(), "rpm")
	if err := os.RemoveAll(database); err != nil {
		return err
	}
	do := func(args ...string) error {
		return t.do(ctx, rpm.Path(), append([]string{"--root", t.root, "--dbpath", "/rpm", "--nodeps"}, args...)...)
	}
	before, err := t.listing()
	if err != nil {
		return err
	}
	console.Say("the rpm installs, runs, is installed again, and is removed")
	if err := do("-i", found[0]); err != nil {
		return err
	}
	err = t.all(ctx, []attempt{
		{what: "it runs for everyone", shell: "bmoe-cli --version -v", says: "files are as they were released"},
		{what: "it runs a model", shell: "bmoe-cli -m model.gguf --auto -p " + greeting + " -n 8 -c 128", says: "tok/s"},
	})
	return errors.Join(err, do("-U", "--force", found[0]), do("-e", "bmoe"), os.RemoveAll(filepath.Join(t.root, "rpm")), t.same(before))
}

// attempt is something done in the bare system.
type attempt struct {
	what   string
	root   bool   // by root; else by the person, in their home
	before string // done by root first
	shell  string // must end well
	says   string // must be in what it prints
	or     string // or this
}

// all makes the attempts, each of which may fail without holding up the next.
func (t *trial) all(ctx context.Context, attempts []attempt) error {
	var failed []error
	for _, a := range attempts {
		out, err := t.inside(ctx, a)
		if err == nil && !strings.Contains(out, a.says) && (a.or == "" || !strings.Contains(out, a.or)) {
			err = fmt.Errorf("it does not say %q", a.says)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w; it printed:\n%s", a.what, err, last([]byte(out))))
			console.Say("FAILED: %s", a.what)
			continue
		}
		console.Say("%s", a.what)
	}
	return errors.Join(failed...)
}

// inside runs a shell in the bare system, whose mounts end with it.
func (t *trial) inside(ctx context.Context, a attempt) (string, error) {
	as, at := "--userspec="+person+":"+person, "/"+home
	if a.root {
		as, at = "--userspec=0:0", "/"
	}
	script := `set -e; root=$1; as=$2; at=$3; before=$4; shell=$5
		mount -t proc proc "$root/proc"; mount -t sysfs sysfs "$root/sys"; mount --bind /dev "$root/dev"
		if [ -n "$before" ]; then chroot "$root" /bin/sh -ec "$before"; fi
		exec chroot "$as" "$root" /usr/bin/env -i HOME="$at" PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LC_ALL=C.UTF-8 /bin/sh -ec "cd $at; $shell"`
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "/bin/sh", "-c", script, "sh", t.root, as, at, a.before, a.shell)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// listing is every file of the bare system but those of its own accounts of packages, and those that are made anew at will.
func (t *trial) listing() (map[string]bool, error) {
	names := map[string]bool{}
	err := filepath.WalkDir(t.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(t.root, path)
		for _, not := range []string{"proc", "sys", "dev", "tmp", home, "var/lib/dpkg", "var/log", "var/cache"} {
			if rel == not {
				return fs.SkipDir
			}
		}
		names[rel] = true
		return err
	})
	return names, err
}

// same fails with the files that came or went since.
func (t *trial) same(before map[string]bool) error {
	after, err := t.listing()
	if err != nil {
		return err
	}
	var differ []string
	for name := range after {
		if !before[name] {
			differ = append(differ, name+" was left")
		}
	}
	for name := range before {
		if !after[name] {
			differ = append(differ, name+" is gone")
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		return fmt.Errorf("after the package was removed: %s", strings.Join(differ, ", "))
	}
	console.Say("nothing is left of it")
	return nil
}

// clock prints how long the program takes to say its version and to make a plan, the middle of eleven tries.
func (t *trial) clock(ctx context.Context) error {
	at := filepath.Join(t.root, home)
	program := filepath.Join(at, t.folder, "bmoe-cli")
	for _, args := range [][]string{{"--version"}, {"-m", filepath.Join(at, "model.gguf"), "--auto", "--plan-only", "--no-probe-io", "--no-history"}} {
		var took []time.Duration
		for range 11 {
			start := time.Now()
			if _, err := t.output(ctx, program, args...); err != nil {
				return err
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		console.Say("bmoe-cli %s: %s, at worst %s", strings.Join(args[max(0, len(args)-4):], " "), took[5].Round(time.Millisecond), took[10].Round(time.Millisecond))
	}
	return nil
}

func (t *trial) do(ctx context.Context, name string, args ...string) error {
	cmd := t.command(ctx, name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Writer(&out), &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, last(out.Bytes()))
	}
	return nil
}

// last is the end of what a program printed.
func last(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
