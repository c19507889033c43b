//go:build linux

package agent

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/kernel/nldev"
)

const (
	firstFD = 3
	asked   = "ROCEBED_AGENT" // in the environment: makes a process an agent
)

// ask is what a fabric asks of its agent, tell the answer.
type ask struct {
	Port     int           // 0: read everything
	Params   *dcqcn.Params // what the port's NIC has from now on
	Watchdog *Watchdog     // what the port has from now on
	Faults   *Faults       // what is wrong with the port's NIC from now on
	Sends    *sends        // what the port pauses its peer in from now on
}

// sends is a structure since gob leaves pointers to zero out.
type sends struct{ Priorities uint8 }

type tell struct {
	Reading Reading
	Err     string
}

// ProcessIfAsked must be called first of all in a program that builds fabrics: a fabric's agent is that program again. In
// such a process it doesn't return.
func ProcessIfAsked() {
	if os.Getenv(asked) == "" {
		return
	}
	if err := be(); err != nil {
		fmt.Fprintln(os.Stderr, "rocebed: the agent of a fabric:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// be is the life of an agent. Its descriptors are, from the first one after standard error on: the connection, the engine's tables,
// and for each node its sockets: past the queues, through them, and where it has NICs the one to RDMA's netlink.
func be() error {
	conn, err := inherited(firstFD)
	if err != nil {
		return err
	}
	in, out := gob.NewDecoder(bufio.NewReader(conn)), gob.NewEncoder(conn)
	var s Spec
	if err := in.Decode(&s); err != nil {
		return fmt.Errorf("hear what to be: %w", err)
	}
	next := firstFD + 1
	fds := make([]int, engine.TableCount())
	for i := range fds {
		fds[i], next = next, next+1
	}
	tables, err := engine.AdoptTables(fds, s.Flows)
	if err != nil {
		return err
	}
	nodes := make([]sockets, len(s.Nodes))
	for i := range nodes {
		nodes[i] = sockets{past: next, through: next + 1}
		next += 2
		if s.Nodes[i].NICs {
			nodes[i].rdma = nldev.Adopt(next)
			next++
		}
	}
	a, err := newAgent(&s, tables, nodes)
	if err != nil {
		return err
	}
	go func() { // the connection's end is the agent's
		for {
			var q ask
			if in.Decode(&q) != nil {
				break
			}
			var t tell
			var err error
			switch {
			case q.Params != nil:
				err = a.setParams(q.Port, *q.Params)
			case q.Watchdog != nil:
				err = a.setWatchdog(q.Port, *q.Watchdog)
			case q.Faults != nil:
				err = a.setFaults(q.Port, *q.Faults)
			case q.Sends != nil:
				err = a.setSends(q.Port, q.Sends.Priorities)
			default:
				t.Reading = a.read()
			}
			if q.Port != 0 && err == nil {
				err = a.events.Wake() // what was set may be due before anything else
			}
			if err != nil {
				t.Err = err.Error()
			}
			if out.Encode(&t) != nil {
				break
			}
		}
		_ = a.close()
	}()
	runtime.LockOSThread()
	urgent()
	return a.run()
}

// urgent lets the calling thread run before others. Where that isn't allowed it is as late as they are, and the measured reaction time
// says so.
func urgent() {
	const fifo = 1 // SCHED_FIFO, include/uapi/linux/sched.h
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: fifo, Priority: 10}
	_ = unix.SchedSetAttr(0, &attr, 0)
}

func inherited(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	return conn, nil
}

// Agent is a fabric's agent, seen from the fabric.
type Agent struct {
	mu   sync.Mutex
	conn net.Conn
	in   *gob.Decoder
	out  *gob.Encoder

	cmd  *exec.Cmd
	gone chan struct{}
	err  error // why it is gone, once it is
}

// answerWithin bounds what an agent takes to answer, in wall time.
const answerWithin = 10 * time.Second

// Files are what an agent is given besides its Spec: for each node, in order, its sockets past and through the ports' queues, and RDMA's netlink
// where it has NICs.
type Files []*os.File

// Start starts the agent of a fabric whose engine is e. The files are closed.
func Start(s *Spec, e *engine.Engine, files Files) (_ *Agent, err error) {
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	tables, err := e.Files()
	if err != nil {
		return nil, err
	}
	files = append(tables, files...)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("agent: make a socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	files = append(Files{theirs}, files...)
	conn, err := inherited(pair[0])
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("agent: %w", err), conn.Close())
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"rocebed-agent"}
	cmd.Env = append(os.Environ(), asked+"=1")
	cmd.ExtraFiles = files
	cmd.Stderr = os.Stderr
	// Ctrl-C is the fabric's to hear, and nothing of an agent outlives its fabric.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	a := &Agent{conn: conn, cmd: cmd, gone: make(chan struct{}), in: gob.NewDecoder(bufio.NewReader(conn)), out: gob.NewEncoder(conn)}
	started := make(chan error, 1)
	go func() {
		// The signal comes when the thread ends that started the process: this one stays.
		runtime.LockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		a.err = cmd.Wait()
		close(a.gone)
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("agent: start: %w", err), conn.Close())
	}
	if err := a.out.Encode(s); err != nil {
		return nil, errors.Join(fmt.Errorf("agent: tell it what to be: %w", err), a.Close())
	}
	_, err = a.Read()
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Gone is closed when the agent's process has ended, of itself or not.
func (a *Agent) Gone() <-chan struct{} { return a.gone }

// PID is its process.
func (a *Agent) PID() int { return a.cmd.Process.Pid }

func (a *Agent) ask(q ask) (Reading, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var t tell
	err := a.conn.SetDeadline(time.Now().Add(answerWithin))
	if err == nil {
		err = a.out.Encode(&q)
	}
	if err == nil {
		err = a.in.Decode(&t)
	}
	switch {
	case err != nil:
		return t.Reading, fmt.Errorf("the agent of the fabric (process %d) doesn't answer: %w", a.PID(), err)
	case t.Err != "":
		return t.Reading, fmt.Errorf("the agent of the fabric: %s", t.Err)
	}
	return t.Reading, nil
}

// Read asks what the agent has done.
func (a *Agent) Read() (Reading, error) { return a.ask(ask{}) }

// SetParams changes the DCQCN of the NIC at a port.
func (a *Agent) SetParams(port int, p dcqcn.Params) error {
	_, err := a.ask(ask{Port: port, Params: &p})
	return err
}

// SetWatchdog changes the watchdog of a port.
func (a *Agent) SetWatchdog(port int, w Watchdog) error {
	_, err := a.ask(ask{Port: port, Watchdog: &w})
	return err
}

// SetFaults changes what is wrong with the NIC at a port.
func (a *Agent) SetFaults(port int, f Faults) error {
	_, err := a.ask(ask{Port: port, Faults: &f})
	return err
}

// SetSends changes in which priorities a port pauses its peer.
func (a *Agent) SetSends(port int, priorities uint8) error {
	_, err := a.ask(ask{Port: port, Sends: &sends{priorities}})
	return err
}

// Close ends the agent.
func (a *Agent) Close() error {
	err := a.conn.Close()
	select {
	case <-a.gone:
	case <-time.After(answerWithin):
		err = errors.Join(err, a.cmd.Process.Kill())
		<-a.gone
	}
	return err
}
