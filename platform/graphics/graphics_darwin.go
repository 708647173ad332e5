package graphics

import (
	"errors"
	"fmt"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
)

// defaultDevice asks MTLCreateSystemDefaultDevice of Metal for its name and hasUnifiedMemory (Metal/MTLDevice.h).
func defaultDevice() (string, bool, error) {
	const path = "/System/Library/Frameworks/Metal.framework/Metal"
	metal, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return "", false, fmt.Errorf("open Metal: %w", err)
	}
	symbol, err := purego.Dlsym(metal, "MTLCreateSystemDefaultDevice")
	if err != nil {
		return "", false, err
	}
	// Both are autoreleased by what is called here; the pool lets them go, and the device is this caller's to release.
	pool := objc.ID(objc.GetClass("NSAutoreleasePool")).Send(objc.RegisterName("new"))
	if pool != 0 {
		defer pool.Send(objc.RegisterName("drain"))
	}
	var create func() objc.ID
	purego.RegisterFunc(&create, symbol)
	device := create()
	if device == 0 {
		return "", false, errors.New("Metal has no default device here")
	}
	defer device.Send(objc.RegisterName("release"))
	unified := objc.RegisterName("hasUnifiedMemory")
	if !objc.Send[bool](device, objc.RegisterName("respondsToSelector:"), unified) {
		return "", false, errors.New("this system's Metal has no hasUnifiedMemory")
	}
	name := objc.Send[string](objc.Send[objc.ID](device, objc.RegisterName("name")), objc.RegisterName("UTF8String"))
	return name, objc.Send[bool](device, unified), nil
}
