// Command beside runs a test program out of another folder, so that it finds there the libraries which the product finds beside
// itself: go test -exec "beside FOLDER" ./core/llama
package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "use: beside FOLDER PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	program, err := place(os.Args[1], os.Args[2])
	if err == nil {
		err = run(program, os.Args[3:])
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "beside:", err)
		os.Exit(1)
	}
}

// place copies the program into the folder. Its name there says which package it tests, so that there is one for each and a
// newer one takes its place.
func place(folder, program string) (string, error) {
	cwd, err := os.Getwd() // go test's: the package's folder
	if err != nil {
		return "", err
	}
	base := strings.TrimSuffix(filepath.Base(program), ".exe")
	name := fmt.Sprintf("%s-%x.test", strings.TrimSuffix(base, ".test"), sha256.Sum256([]byte(cwd)))
	name = name[:len(name)-len(".test")-56] + ".test"
	if strings.HasSuffix(program, ".exe") {
		name += ".exe"
	}
	in, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.CreateTemp(folder, ".beside-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name()) // gone already when all went well
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Chmod(0o755), out.Close()); err != nil {
		return "", err
	}
	placed := filepath.Join(folder, name)
	return placed, os.Rename(out.Name(), placed)
}

// run becomes the program where a process can, so that go test's signals reach it.
func run(program string, args []string) error {
	err := syscall.Exec(program, append([]string{program}, args...), os.Environ())
	if _, statErr := os.Stat(program); statErr != nil {
		return err
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
