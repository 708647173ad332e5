package lock

import "errors"

func store() (bool, string, error) { return false, "", errors.ErrUnsupported }

func storeTotal() (int64, string, error) { return 0, "", errors.ErrUnsupported }

func alloc(int) (held, error) { return nil, errors.ErrUnsupported }
