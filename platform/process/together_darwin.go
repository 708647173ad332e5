package process

import (
	"os/exec"
	"syscall"
)

// together has the child and what it starts end together. Source: setpgid(2), kill(2).
func together(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
}
