package process

import (
	"os/exec"
	"syscall"
)

// together has the child and what it starts end together, and the child with this process. Source: setpgid(2), kill(2),
// prctl(2) PR_SET_PDEATHSIG.
func together(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
}
