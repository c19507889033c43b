//go:build !linux

package guest

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"github.com/rocebed/rocebed/images"
)

// machine stands for the QEMU process, which needs Linux.
type machine struct {
	pid     int
	port    net.Conn
	console *console
	exited  chan struct{}
}

func (m *machine) kill() {}

func (m *machine) failure() *Failure { return &Failure{Kind: ErrDied} }

func (m *machine) fail(kind error, detail string) *Failure {
	return &Failure{Kind: kind, Detail: detail}
}

// Waits knows nothing here.
func (g *Guest) Waits() (w Waits, ok bool) { return w, false }

// Boot boots a guest; here it can't.
func Boot(context.Context, Config) (*Guest, error) {
	return nil, unavailable("it needs Linux, this is %s", runtime.GOOS)
}

// Remembered finds nothing here.
func Remembered(*images.Image, string) (Accelerator, bool) { return Accelerator{}, false }

// Init is for Linux guests.
func Init() {
	fmt.Fprintln(os.Stderr, "guest-init is for process 1 of a rocebed guest")
	os.Exit(2)
}

// InitIfAsked does nothing here.
func InitIfAsked() {}
