//go:build linux

package soft

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
)

var _ fabric.Halter = (*Fabric)(nil)

// Halt implements fabric.Halter: of a host with a process of its own that process is stopped (SIGSTOP), of any other the loop on which its program and
// its NICs are.
func (f *Fabric) Halt(host string, done func(error)) {
	if h := f.awayHost(host); h != nil {
		go func() { done(h.stop()) }()
		return
	}
	n, err := f.hostNode(host)
	if err == nil && n.loop.Halted() {
		err = fmt.Errorf("%s stands still already", host)
	}
	if err != nil {
		done(err)
		return
	}
	loop.Halt(f.control, n.loop, func() {
		n.atHalt, err = n.drops()
		n.halted.Store(true)
		done(err)
	})
}

// Resume implements fabric.Halter.
func (f *Fabric) Resume(host string, done func(error)) {
	if h := f.awayHost(host); h != nil {
		go func() { done(h.goOn()) }()
		return
	}
	n, err := f.hostNode(host)
	if err != nil || !n.halted.Load() {
		done(err)
		return
	}
	loop.Resume(f.control, n.loop, func() {
		n.halted.Store(false)
		done(f.excuse(n))
	})
}

// excuse takes what found no room while a node stood still for what nobody could have taken.
func (f *Fabric) excuse(n *node) error {
	now, err := n.drops()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.base.nodes[n.name].drops {
		f.base.nodes[n.name].drops[i] += now[i] - n.atHalt[i]
	}
	return nil
}

func (n *node) drops() (all []uint64, err error) {
	for _, p := range n.ports {
		d, derr := p.sock.Drops()
		all, err = append(all, d), errors.Join(err, derr)
	}
	return all, err
}

// Kill implements fabric.Halter.
func (f *Fabric) Kill(host string, done func(error)) {
	if h := f.awayHost(host); h != nil {
		go func() { done(h.kill()) }()
		return
	}
	_, err := f.hostNode(host)
	done(err)
}

// State implements fabric.Halter.
func (f *Fabric) State(host string, done func(fabric.ProcessState, error)) {
	if h := f.awayHost(host); h != nil {
		done(h.state())
		return
	}
	n, err := f.hostNode(host)
	switch {
	case err != nil:
		done("", err)
	case n.loop.Halted():
		done(fabric.ProcessStopped, nil)
	default:
		done(fabric.ProcessRuns, nil)
	}
}

func (f *Fabric) hostNode(name string) (*node, error) {
	for _, h := range f.hosts {
		if h.name == name {
			return h.node, nil
		}
	}
	return nil, fmt.Errorf("there is no soft-host %s", name)
}

// state reads from the kernel how the process is.
func (h *away) state() (fabric.ProcessState, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.pid()))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return fabric.ProcessGone, nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: its process: %w", h.name, err)
	}
	_, rest, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')'):], []byte(" ")) // proc_pid_stat(5): the state follows the name
	switch rest[0] {
	case 'T', 't':
		return fabric.ProcessStopped, nil
	case 'Z', 'X', 'x':
		return fabric.ProcessGone, nil
	}
	return fabric.ProcessRuns, nil
}

// until waits for the process to be in a state.
func (h *away) until(want fabric.ProcessState) error {
	for end := time.Now().Add(answerPatience); ; time.Sleep(time.Millisecond) {
		s, err := h.state()
		switch {
		case err != nil:
			return err
		case s == want || want == fabric.ProcessRuns && s != fabric.ProcessStopped:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%s: its process %d %s, %v after it was to be otherwise", h.name, h.pid(), s, answerPatience)
		}
	}
}

// stop stops the process. How it has kept up so far is taken before: afterwards it is late in everything.
func (h *away) stop() error {
	h.keep(h.ownWord())
	h.standing.Store(true)
	if err := unix.Kill(h.pid(), unix.SIGSTOP); err != nil {
		h.standing.Store(false)
		return fmt.Errorf("%s: stop its process %d: %w", h.name, h.pid(), err)
	}
	return h.until(fabric.ProcessStopped)
}

func (h *away) goOn() error {
	if !h.standing.Load() {
		return nil
	}
	if err := unix.Kill(h.pid(), unix.SIGCONT); err != nil {
		return fmt.Errorf("%s: let its process %d go on: %w", h.name, h.pid(), err)
	}
	if err := h.until(fabric.ProcessRuns); err != nil {
		return err
	}
	h.standing.Store(false)
	_, err := h.ask(background, asked{Do: "judge"})
	return err
}

func (h *away) kill() error {
	h.slain.Store(true)
	if err := unix.Kill(h.pid(), unix.SIGKILL); err != nil {
		return fmt.Errorf("%s: kill its process %d: %w", h.name, h.pid(), err)
	}
	<-h.ended
	return nil
}

// answers says whether the process is there to be asked.
func (h *away) answers() bool { return !h.standing.Load() && !h.slain.Load() }
