package kernel

// Level says what needs a feature.
type Level string

// The levels.
const (
	Needed Level = "needed" // the kernel backend can't do without
	Useful Level = "useful" // something is worse or refused without
)

// Feature is something that this machine can or can't do, found out by doing it.
type Feature struct {
	Name    string `json:"name"`
	Level   Level  `json:"level"`
	Present bool   `json:"present"`
	// Why is what the kernel said where the feature is missing.
	Why string `json:"why,omitempty"`
	// For is what rocebed does with it, Cost what its absence costs, Get how to get it.
	For  string `json:"for"`
	Cost string `json:"cost"`
	Get  string `json:"get"`
}

// Libibverbs is the one feature that is this binary's, not the machine's.
const Libibverbs = "libibverbs"
