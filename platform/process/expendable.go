package process

// Expendable has the system end this process before others where it must end one for want of memory, as far as the system
// lets a process say so.
func Expendable() { expendable() }
