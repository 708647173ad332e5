// Package cgroup finds the control groups that bound this process, as directories that hold a controller's files.
//
// It serves the platform packages that ask what a group allows, and must not know what those files mean. It reads a file
// tree that is given, so it works on any system and on trees made up for tests.
package cgroup

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Group is one control group that this process is in, itself or by an ancestor.
type Group struct {
	Dir string // in the tree it was found in, without a leading slash
	V2  bool   // which version's files to expect
}

// Of lists the groups that bound this process as far as a controller goes ("memory", "cpu"), innermost first, up to the
// outermost that is visible: those of the controller's version 1 tree, then those of the version 2 tree. A group may
// lack the controller's files. A system without control groups has none.
//
// tree is the root of the file system.
func Of(tree fs.FS, controller string) ([]Group, error) {
	memberships, err := read(tree, "proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := read(tree, "proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var v1, v2 []Group
	for _, line := range memberships {
		// hierarchy:controllers:path, where version 2 has the hierarchy 0 and no controllers
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("read /proc/self/cgroup: no membership: %q", line)
		}
		switch {
		case fields[0] == "0" && fields[1] == "":
			v2 = chain(mounts, "", fields[2])
		case contains(fields[1], controller):
			v1 = chain(mounts, controller, fields[2])
		}
	}
	groups := append(v1, v2...)
	for _, g := range groups {
		if !fs.ValidPath(g.Dir) {
			return nil, fmt.Errorf("the name of the control group %q is not UTF-8", g.Dir)
		}
	}
	return groups, nil
}

// chain is the groups from the one at membership up to the mount's root. A membership outside of what is mounted (a
// container that sees only a part of the tree) is bounded by the mount's root as far as can be seen.
func chain(mounts []string, controller, membership string) []Group {
	var groups []Group
	for _, line := range mounts {
		m, ok := parseMount(line)
		if !ok || m.v2 != (controller == "") || (!m.v2 && !contains(m.options, controller)) {
			continue
		}
		relative, inside := within(m.root, membership)
		if !inside && groups != nil {
			continue
		}
		groups = nil
		for ; ; relative = path.Dir(relative) {
			dir := strings.TrimPrefix(path.Join("/", m.point, relative), "/")
			groups = append(groups, Group{Dir: cmp.Or(dir, "."), V2: m.v2})
			if relative == "." {
				break
			}
		}
		if inside {
			return groups
		}
	}
	return groups
}

type mount struct {
	root, point, options string // options are the super block's: version 1 names its controllers there
	v2                   bool
}

// parseMount takes a line of mountinfo: id parent device root point options [optional fields] - type source options.
func parseMount(line string) (mount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	if !ok {
		return mount{}, false
	}
	where, what := strings.Fields(before), strings.Fields(after)
	if len(where) < 6 || len(what) < 3 || (what[0] != "cgroup" && what[0] != "cgroup2") {
		return mount{}, false
	}
	return mount{root: unescape(where[3]), point: unescape(where[4]), options: what[2], v2: what[0] == "cgroup2"}, true
}

// within is where, below root, the path is; "." and false when it is not below it.
func within(root, p string) (string, bool) {
	root, p = path.Clean("/"+root), path.Clean("/"+p)
	switch {
	case root == "/":
		return path.Clean(strings.TrimPrefix(p, "/")), true
	case p == root:
		return ".", true
	case strings.HasPrefix(p, root+"/"):
		return p[len(root)+1:], true
	}
	return ".", false
}

func contains(list, name string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if item == name {
			return true
		}
	}
	return false
}

// unescape undoes mountinfo's octal escapes: a space in a path is \040.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func read(tree fs.FS, name string) ([]string, error) {
	f, err := tree.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var lines []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	return lines, s.Err()
}
