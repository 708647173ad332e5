package graphics

import "errors"

func defaultDevice() (string, bool, error) { return "", false, errors.ErrUnsupported }
