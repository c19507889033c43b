package keeper

import (
	"encoding/json"
	"time"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo"
)

// The methods of a keeper.
const (
	methodStatus    = "status"
	methodProgram   = "program"
	methodMetrics   = "metrics"
	methodDown      = "down"
	methodFaultAdd  = "fault-add"
	methodFaultList = "fault-list"
	methodFaultHeal = "fault-heal"
)

// request is what a client sends: one line.
type request struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// reply is a line of a keeper's answer. The last has Result or Error; those before have Step.
type reply struct {
	Step   string          `json:"step,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	Code   int             `json:"code,omitempty"` // of Error: the exit code that it asks for, if it asks for one
}

// AnswerError is what a keeper answered that didn't do as it was told.
type AnswerError struct {
	Why string
	// Code is the exit code that it asks for: 2 where the request was wrong, else 1.
	Code int
}

func (e *AnswerError) Error() string { return e.Why }

// The exit codes of answers.
const (
	codeFailed = 1
	codeWrong  = 2
)

// Status is what a testbed is. Times are fabric time unless they say otherwise.
type Status struct {
	Testbed  string    `json:"testbed"`
	Scenario string    `json:"scenario,omitempty"` // its name
	Backend  string    `json:"backend"`
	Keeper   int       `json:"keeper"` // the keeper's process id on this machine
	Since    time.Time `json:"since"`  // when the fabric had come up, wall time
	Dilation uint32    `json:"dilation"`
	// Fabric is how much fabric time has passed since the fabric's epoch.
	Fabric   time.Duration `json:"fabric_ns"`
	KeptUp   bool          `json:"kept_up"`
	Late     string        `json:"late,omitempty"` // what was late, when it did not keep up
	Warnings []string      `json:"warnings,omitempty"`
	Guest    *GuestStatus  `json:"guest,omitempty"`
	Nodes    []NodeStatus  `json:"nodes"`
	Links    []LinkStatus  `json:"links"`
}

// GuestStatus is the guest that a testbed lives in.
type GuestStatus struct {
	PID      int    `json:"pid"` // of QEMU, on this machine
	Kernel   string `json:"kernel"`
	Accel    string `json:"accel"`
	MemoryMB int    `json:"memory_mb"`
	CPUs     int    `json:"cpus"`
}

// NodeStatus is a node.
type NodeStatus struct {
	Name      string       `json:"name"`
	Role      topo.Role    `json:"role"`
	Kind      topo.Kind    `json:"kind,omitempty"`
	Process   int          `json:"process,omitempty"` // a host's own process, where it has one
	Namespace string       `json:"namespace"`         // for 'ip netns exec'; in the guest, where there is one
	Ports     []PortStatus `json:"ports"`
}

// PortStatus is a port with what hangs on it.
type PortStatus struct {
	Name     string `json:"name"`
	Addr     string `json:"addr,omitempty"` // with the prefix length
	MAC      string `json:"mac"`
	Peer     string `json:"peer"`
	RDMA     string `json:"rdma,omitempty"` // the RDMA device
	GID      string `json:"gid,omitempty"`
	GIDIndex int    `json:"gid_index,omitempty"`
}

// LinkStatus is a link.
type LinkStatus struct {
	A     topo.PortRef  `json:"a"`
	B     topo.PortRef  `json:"b"`
	Rate  topo.Rate     `json:"rate"`
	Delay time.Duration `json:"delay_ns"`
	MTU   int           `json:"mtu"`
}

// programParams asks how a program is to be run on a node.
type programParams struct {
	Node string `json:"node"`
}

// faultAddParams adds faults.
type faultAddParams struct {
	File   string `json:"file"` // for messages
	Source []byte `json:"source"`
}

// faultHealParams names the faults to heal; none: all.
type faultHealParams struct {
	Names []string `json:"names,omitempty"`
}

// FaultStates are how far faults have come.
type FaultStates struct {
	Faults []fabric.FaultState `json:"faults"`
}

// Program is how a program is run on a node.
type Program struct {
	Node  string `json:"node"`
	Inode uint64 `json:"inode,omitempty"` // identity of the node's namespace on this machine
	// Env is added to the program's environment.
	Env []string `json:"env,omitempty"`
	// Notes are for the user.
	Notes    []string `json:"notes,omitempty"`
	Dilation uint32   `json:"dilation"`
	// Guest is set when the node lives in a guest: the program is run by the guest's own rocebed.
	Guest bool `json:"guest,omitempty"`
}

// Metrics is one reading of everything.
type Metrics struct {
	Samples []metrics.Sample `json:"samples"`
	Error   string           `json:"error,omitempty"` // what could not be read
}
