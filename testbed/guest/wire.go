package guest

import (
	"encoding/json"
	"time"
)

// The SSH connection's own vocabulary. Each channel type carries its parameters as JSON
// in the data of the open request; a refusal's message is the error.
const (
	// chanRun runs a program: standard input and output, error as extended data,
	// requests signal, window-change, exit-status and exit-signal as in RFC 4254 §6.
	chanRun = "run@rocebed"
	// chanShip takes a tar stream and unpacks it; chanFetch sends one.
	chanShip  = "ship@rocebed"
	chanFetch = "fetch@rocebed"
	// chanDial connects to a unix socket in the guest.
	chanDial = "dial@rocebed"

	// reqHello answers, once the guest is ready, with a hello.
	reqHello = "hello@rocebed"
	// reqClock answers at once with the guest's time, a clockAnswer.
	reqClock = "clock@rocebed"
	// reqAlive answers at once.
	reqAlive = "keepalive@openssh.com"
)

// runSpec opens a chanRun.
type runSpec struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
	Pty  *Pty     `json:"pty,omitempty"`
}

// pathSpec opens the other channels.
type pathSpec struct {
	Path string `json:"path"`
}

// hello is the guest's answer to reqHello.
type hello struct {
	Kernel string `json:"kernel"`
	Steps  []Step `json:"steps"`
	Error  string `json:"error,omitempty"` // what the guest could not set up
}

// clockAnswer is the guest's answer to reqClock.
type clockAnswer struct {
	Monotonic time.Duration `json:"monotonic_ns"` // CLOCK_MONOTONIC
}

// bootSpec is what the machine leaves for init, at bootSpecPath, readable by root alone.
type bootSpec struct {
	HostKey   []byte `json:"host_key"`   // ed25519 seed
	ClientKey []byte `json:"client_key"` // public, in SSH's wire format
}

const (
	bootSpecPath = "/run-rocebed.json"
	portName     = "rocebed.ssh"
)

// windowChange is RFC 4254 §6.7's payload, exitStatus §6.10's, and so on.
type windowChange struct{ Cols, Rows, Width, Height uint32 }

type signalMsg struct{ Name string }

type exitStatusMsg struct{ Code uint32 }

type exitSignalMsg struct {
	Name     string
	Core     bool
	Message  string
	Language string
}

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own plain structs come here
	}
	return raw
}
