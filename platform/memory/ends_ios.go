package memory

import "errors"

func ends() (bool, string, error) {
	if _, limited := share(); limited {
		return true, "an app is ended past its share (os_proc_available_memory)", nil
	}
	return false, "", errors.New("os_proc_available_memory is 0: this process is no app, or is past its share")
}
