package guest

import "time"

// Accelerator is what an earlier boot found out about this machine's accelerators.
type Accelerator struct {
	// Accel is "kvm" where a guest came up under it, "tcg" where one failed under KVM.
	Accel string
	// When and Why it failed, or when it came up.
	When time.Time
	Why  string
	// File holds the memory: without it the next boot tries KVM again.
	File string
}
