package lock

import "errors"

func inPlace() (int64, string, error) { return 0, "", errors.ErrUnsupported }
