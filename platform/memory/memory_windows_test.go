package memory

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
)

// jobEnv makes the test binary a process that puts itself into a job and says what Read says there.
const jobEnv = "BMOE_TEST_MEMORY_JOB"

func TestMain(m *testing.M) {
	if os.Getenv(jobEnv) == "" {
		os.Exit(m.Run())
	}
	if err := inJob(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	jobLimit           = 768 << 20
	limitProcessMemory = 0x100 // JOB_OBJECT_LIMIT_PROCESS_MEMORY
)

func inJob() error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = limitProcessMemory
	info.ProcessMemoryLimit = jobLimit
	at, size := uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, at, size); err != nil {
		return err
	}
	if err := windows.AssignProcessToJobObject(job, windows.CurrentProcess()); err != nil {
		return err
	}
	var kept windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	at = uintptr(unsafe.Pointer(&kept))
	if err := windows.QueryInformationJobObject(job, windows.JobObjectExtendedLimitInformation, at, size, nil); err != nil {
		return err
	}
	if kept.ProcessMemoryLimit != jobLimit {
		fmt.Println("the system keeps no such limit")
		return nil
	}
	f, err := Read()
	if err != nil {
		return err
	}
	yes, from, err := Ends()
	if err != nil {
		return err
	}
	if f.Limit != jobLimit || f.Available >= jobLimit || yes || !strings.Contains(from, "refused") {
		return fmt.Errorf("in a job of %d bytes: %+v, ends %t: %s", jobLimit, f, yes, from)
	}
	fmt.Println("limited")
	return nil
}

// A process in a real job is limited by it. Wine keeps no limits of a job, and the test says so there.
func TestProcessInAJob(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobEnv+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	said := strings.TrimSpace(string(out))
	t.Log(said)
	assert.Contains(t, []string{"limited", "the system keeps no such limit"}, said)
}
