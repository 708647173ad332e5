package probe

import (
	"context"

	"github.com/bmoe/bmoe/core/machine"
	"github.com/bmoe/bmoe/core/plan"
)

// Place asks llama.cpp's capacity fitter where the model's layers would go among the usable devices, and what a session as
// wide as r says, and one half as wide, would reserve for context and compute buffers. What could not be projected is
// unknown, and Projection.Why says what stood in the way. The error is ctx's alone.
func Place(ctx context.Context, _ Request, _ []machine.Device) (plan.Placement, error) {
	return plan.Placement{Projection: plan.Projection{Why: "this build carries nothing that projects it"}}, ctx.Err()
}
