// Command beside runs a test program out of another folder, so that it finds there the libraries which the product finds beside
// itself: go test -exec "beside FOLDER" ./core/llama. Another system's test runs through a program that can run it:
// go test -exec "beside -through wine64 FOLDER" ./core/llama
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
	args, through := os.Args[1:], ""
	if len(args) > 1 && args[0] == "-through" {
		args, through = args[2:], args[1]
	}
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "use: beside [-through RUNNER] FOLDER PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	program, err := place(args[0], args[1])
	if err == nil {
		line := append([]string{program}, args[2:]...)
		if through != "" {
			line = append([]string{through}, line...)
		}
		err = run(line)
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
func run(line []string) error {
	err := syscall.Exec(line[0], line, os.Environ())
	if _, statErr := os.Stat(line[0]); statErr != nil {
		return err
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
