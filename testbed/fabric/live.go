package fabric

import (
	"context"
	"time"
)

// LiveFaults are faults that come and go on a fabric that is up. Its methods may be called from any goroutine.
type LiveFaults interface {
	// Add takes faults, as a scenario file has them: a list, one alone, or a file with the key faults. Their schedules count from now on.
	// It returns when those that are due at once are in force and read back. Its errors are strict.Problems where the faults are
	// wrong or can't be had on this testbed; then none of them was added. file is for messages.
	Add(ctx context.Context, file string, source []byte) ([]FaultState, error)
	// List is every fault that was added and not replaced since, the oldest first.
	List(ctx context.Context) ([]FaultState, error)
	// Heal ends faults by their names, or those of their groups, and returns when they are healed and verified clean: the last applied first. Without names
	// it ends all. What could not be healed is an error.
	Heal(ctx context.Context, names ...string) ([]FaultState, error)
	// Close heals all and lets go of what watches the fabric. It fails while anything is left of a fault.
	Close(ctx context.Context) error
}

// FaultState is how far a fault on a living fabric has come.
type FaultState struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`
	At    []string `json:"at"`
	State string   `json:"state"` // one of the states below
	// Note is what it waits for, or when it strikes.
	Note     string     `json:"note,omitempty"`
	Since    *time.Time `json:"since,omitempty"` // wall time at which it came into force, the last time
	Strikes  int        `json:"strikes"`         // how often it came into force
	Hits     int64      `json:"hits"`            // so far
	Verified bool       `json:"verified"`        // it was read back
	Problems []string   `json:"problems"`
}

// The states of faults.
const (
	FaultPlanned = "planned"  // it strikes at a time that is known
	FaultWaiting = "waiting"  // for an event
	FaultBusy    = "changing" // it is being applied, or healed
	FaultInForce = "in force"
	FaultHealed  = "healed"     // for good
	FaultNever   = "ended"      // before it was in force
	FaultFailed  = "failed"     // it could not be applied, or read back; nothing of it is left
	FaultStuck   = "NOT HEALED" // something of it is left
)
