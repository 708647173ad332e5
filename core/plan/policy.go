package plan

// Policy is every figure here that is a choice and not a measurement. Each is quoted as policy where it decides.
type Policy struct {
	MarginCompresses float64 `json:"margin_compresses"` // share of the budget left free where pressure compresses
	MarginSwaps      float64 `json:"margin_swaps"`      // where it swaps
	MarginKills      float64 `json:"margin_kills"`      // where it ends the process
	MarginUnknown    float64 `json:"margin_unknown"`    // where nobody knows
	MarginLeast      int64   `json:"margin_least"`      // bytes, whatever the share

	FitsAir         float64 `json:"fits_air"`         // room beyond a resident model, as a multiple of it, where reclaim is cheap
	DeviceWin       float64 `json:"device_win"`       // by how much a device must beat the host
	ErrorBound      float64 `json:"error_bound"`      // normalized mean squared error up to which a result is the host's
	ComputeShare    float64 `json:"compute_share"`    // of what may be held, for the buffers of the widest graph
	WidthLeast      int     `json:"width_least"`      // tokens; no graph is made narrower than this
	LockMargin      float64 `json:"lock_margin"`      // share of what may be locked that is left to others
	LaneTolerance   float64 `json:"lane_tolerance"`   // of the best read rate, within which more lanes are better
	SpreadQuoted    float64 `json:"spread_quoted"`    // fastest over slowest repeat of a rate beyond which it is quoted
	ContextDefault  int     `json:"context_default"`  // tokens, where nobody asked
	ActivationRows  int     `json:"activation_rows"`  // 32-bit rows of the model's width that a token of a graph takes, where it was not projected
	DeviceWidth     int     `json:"device_width"`     // tokens of the wide measurement that a prefill device is chosen by
	Program         int64   `json:"program"`          // bytes of the program itself and its libraries
	CrossingsPlaced int     `json:"crossings_placed"` // graph crossings per layer when its halves are on different sides
}

// DefaultPolicy is the policy in force unless someone overrides a figure.
func DefaultPolicy() Policy {
	return Policy{
		MarginCompresses: 0.10, MarginSwaps: 0.04, MarginKills: 0.20, MarginUnknown: 0.15, MarginLeast: 256 << 20,
		FitsAir: 1.0, DeviceWin: 0.10, ErrorBound: 5e-4, ComputeShare: 0.10, WidthLeast: 512, LockMargin: 0.05,
		LaneTolerance: 0.05, SpreadQuoted: 1.25, ContextDefault: 4096, ActivationRows: 24, DeviceWidth: 128,
		Program: 150 << 20, CrossingsPlaced: 2,
	}
}
