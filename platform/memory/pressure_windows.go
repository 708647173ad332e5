package memory

import "errors"

func ends() (bool, string, error) { return false, "", errors.ErrUnsupported }

func compresses() (bool, string, error) { return false, "", errors.ErrUnsupported }

func swaps() (bool, string, error) { return false, "", errors.ErrUnsupported }

func compressorRatio() (float64, string, error) { return 0, "", errors.ErrUnsupported }

func idleAnonymous() (int64, string, error) { return 0, "", errors.ErrUnsupported }
