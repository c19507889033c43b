//go:build linux

package soft

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/testbed/soft/packet"
	"github.com/rocebed/rocebed/testbed/soft/remote"
	"github.com/rocebed/rocebed/topo"
)

var background = context.Background()

// away is a soft-host whose node is a process of its own. What uses its devices runs here, on a loop of
// its own, and speaks to them over a socket; what goes wrong on its links strikes where its frames come in.
type away struct {
	name   string
	cmd    *exec.Cmd
	loop   *loop.Real
	clock  *packet.Poller
	client *remote.Client
	nics   []fabric.NIC
	quiet  []closer
	bed    *linux.Testbed

	entry    []string // in the testbed's journal
	closing  atomic.Bool
	standing atomic.Bool // it was stopped, for a fault
	slain    atomic.Bool // it was killed, by a fault
	mu       sync.Mutex
	slow     bool          // late is that and nothing worse
	late     error         // how it had not kept up whenever it was stopped
	ended    chan struct{} // closed once the process has ended, as exit says
	exit     error
}

// Name is the topology's name for the node.
func (h *away) Name() string { return h.name }

// Kind is what the node is made of.
func (h *away) Kind() topo.Kind { return topo.SoftHost }

// Loop is the loop on which the host's devices are used.
func (h *away) Loop() loop.Loop { return h.loop }

// NICs are the host's RDMA devices, in port order.
func (h *away) NICs() []fabric.NIC { return h.nics }

// answerPatience is how long the process may take to answer what is no verb: a busy machine is slow, and one that was stopped
// says nothing.
const answerPatience = 2 * time.Second

// addAway starts a host's process.
func (f *Fabric) addAway(ctx context.Context, n *topo.Node, cpu int, maker *silicon.Maker) (err error) {
	ns := f.wiring.Node(n.Name)
	h := &away{name: n.Name, bed: f.cfg.Testbed, ended: make(chan struct{})}
	f.away = append(f.away, h)
	model, err := maker.Model(n)
	if err != nil {
		return err
	}
	model.Known = maker.Known()
	s := spec{Model: *model, Dilation: f.cfg.Dilation, Epoch: monotonic() - time.Since(f.epoch), CPU: cpu}
	conn, theirs, err := socketpair()
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	files, theirFiles, err := socketpair()
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, errors.Join(err, conn.Close(), theirs.Close()))
	}
	inherit := []*os.File{theirs, theirFiles}
	defer func() {
		for _, file := range inherit {
			file.Close()
		}
	}()
	for i := range model.Ports {
		p := &model.Ports[i]
		fd, index, err := packet.Raw(ns, p.Plan.Ref.Port)
		if err != nil {
			return errors.Join(err, conn.Close(), files.Close())
		}
		inherit = append(inherit, os.NewFile(uintptr(fd), "packet socket"))
		s.Ports = append(s.Ports, specPort{Index: index, Room: f.cfg.room(&p.Link), Delay: p.Link.Delay})
		q, err := hush(ns, p.Plan.Ref.Port, true)
		if err != nil {
			return errors.Join(err, conn.Close(), files.Close())
		}
		h.quiet = append(h.quiet, q)
	}
	if err := h.start(inherit); err != nil {
		return errors.Join(err, conn.Close(), files.Close())
	}
	if err := gob.NewEncoder(conn).Encode(&s); err != nil {
		return fmt.Errorf("%s: tell its process what to be: %w", n.Name, errors.Join(err, conn.Close(), files.Close()))
	}
	if h.clock, err = packet.NewPoller(n.Name, -1); err != nil {
		return errors.Join(err, conn.Close(), files.Close())
	}
	h.loop = loop.NewRealWith(f.cfg.Dilation, f.epoch, sleeper{h.clock})
	client, answers, err := remote.Dial(h.loop, conn, files)
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, errors.Join(err, conn.Close(), files.Close()))
	}
	client.Run(answers)
	h.client = client
	for i, d := range client.Devices() {
		h.nics = append(h.nics, silicon.FabricNIC(&model.Ports[i].Plan, d))
	}
	return ctx.Err()
}

// start starts the process, and notes it for whoever cleans up.
func (h *away) start(inherit []*os.File) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	h.cmd = exec.Command(exe)
	h.cmd.Args = []string{"rocebed " + h.name}
	h.cmd.Env = append(os.Environ(), specEnv+"="+h.name, linux.ProgramMark(h.bed.Name()))
	h.cmd.Stderr = os.Stderr
	h.cmd.ExtraFiles = inherit
	// It ends with this process, however that ends; and it is not the terminal's to interrupt.
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the kernel takes the end of the thread that started it for the end of the parent
		defer runtime.UnlockOSThread()
		err := h.cmd.Start()
		started <- err
		if err == nil {
			h.exit = h.cmd.Wait()
		}
		close(h.ended)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%s: start its process: %w", h.name, err)
	}
	h.entry = linux.ProcessID(h.pid())
	return h.bed.Own(linux.KindProcess, h.entry...)
}

func socketpair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")
	defer ours.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return c.(*net.UnixConn), theirs, nil
}

// sleeper is a source of nothing, which waits to the microsecond.
type sleeper struct{ p *packet.Poller }

func (s sleeper) Wait(limit time.Duration) {
	if s.p.Wait(limit) != nil {
		time.Sleep(time.Millisecond)
	}
}
func (sleeper) Gather()                 {}
func (sleeper) Next() (loop.Time, bool) { return 0, false }
func (sleeper) Handle()                 {}
func (s sleeper) End()                  { s.p.Release() }
func (s sleeper) Wake()                 { s.p.Wake() }

// tell asks the process for something and doesn't wait.
func (h *away) tell(a asked, done func(*told, error)) {
	b, err := json.Marshal(&a)
	if err != nil {
		panic(err)
	}
	h.client.Other(b, func(b []byte, err error) {
		t := new(told)
		if len(b) > 0 {
			err = errors.Join(err, json.Unmarshal(b, t))
		}
		done(t, err)
	})
}

// ask asks the process for something.
func (h *away) ask(ctx context.Context, a asked) (*told, error) {
	if err := h.alive(); err != nil {
		return nil, err
	}
	type result struct {
		t   *told
		err error
	}
	got := make(chan result, 1)
	h.tell(a, func(t *told, err error) { got <- result{t, err} })
	timer := time.NewTimer(answerPatience)
	defer timer.Stop()
	select {
	case r := <-got:
		return r.t, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, fmt.Errorf("%s: its process %d has not answered for %v: it was stopped, or has no processor", h.name, h.pid(), answerPatience)
	}
}

func (h *away) pid() int { return h.cmd.Process.Pid }

// alive says how the process has ended, if it has.
func (h *away) alive() error {
	select {
	case <-h.ended:
		if h.closing.Load() {
			return nil
		}
		how := "it ended by itself"
		if h.exit != nil {
			how = h.exit.Error()
		}
		return fmt.Errorf("%s: its process %d is gone: %s", h.name, h.pid(), how)
	default:
		return nil
	}
}

// keepUp is how the process has kept up, before it was stopped and since. slow: it was late, and nothing worse.
func (h *away) keepUp() (slow bool, err error) {
	slow, err = h.ownWord()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.late == nil {
		return slow, err
	}
	return h.slow && (slow || err == nil), errors.Join(h.late, err)
}

// ownWord is what the process says of itself, since it was last told to judge.
func (h *away) ownWord() (slow bool, err error) {
	if h.slain.Load() { // what it was like is not known any more
		return false, nil
	}
	t, err := h.ask(background, asked{Do: "keepup"})
	if err == nil && t.Problem != "" {
		slow, err = t.Slow, errors.New(t.Problem)
	}
	return slow, err
}

// keep remembers how the process kept up until it was stopped: the first time that it was late, and the first that it was worse.
// A host may be stopped thousands of times.
func (h *away) keep(slow bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
	case h.late == nil:
		h.slow, h.late = slow, err
	case h.slow && !slow:
		h.slow, h.late = false, errors.Join(h.late, err)
	}
}

// Close ends the process.
func (h *away) Close(context.Context) error {
	var errs []error
	h.closing.Store(true)
	if h.client != nil {
		errs = append(errs, h.client.Close()) // it ends when it hears nothing any more
	}
	if h.cmd != nil && h.cmd.Process != nil {
		timer := time.NewTimer(answerPatience)
		select {
		case <-h.ended:
		case <-timer.C:
			errs = append(errs, h.cmd.Process.Kill())
			<-h.ended
		}
		timer.Stop()
		errs = append(errs, h.bed.Disown(linux.KindProcess, h.entry...))
	}
	if h.loop != nil {
		h.loop.Close()
	}
	if h.clock != nil {
		errs = append(errs, h.clock.Close())
	}
	for _, q := range h.quiet {
		errs = append(errs, q.Close())
	}
	h.quiet, h.client = nil, nil
	return errors.Join(errs...)
}

// inlet brings what passes the wire of a host that is away to the port across its link.
type inlet struct{ p *port }

// Send implements link.Wire.
func (w inlet) Send(f *link.Frame, at loop.Time) {
	p := w.p
	if at <= p.node.loop.Now() {
		p.to.Receive(f)
		return
	}
	f.ArriveAt(p.to, p.index)
	p.node.loop.Arm(&f.Timer, at)
}

// awayEnd passes on what is done to the port of a host that is away. It belongs to the loop of the node across the link.
type awayEnd struct {
	h    *away
	port int
	rate uint64
}

func (e *awayEnd) SetLink(up bool) {
	e.h.tell(asked{Do: "carrier", Port: e.port, Up: up}, func(*told, error) {})
}

func (e *awayEnd) SetRate(rate uint64) {
	e.rate = rate
	e.h.tell(asked{Do: "rate", Port: e.port, Rate: rate}, func(*told, error) {})
}

func (e *awayEnd) Rate() uint64 { return e.rate }

// Order has the process do something to a fault in its NIC.
func (e *awayEnd) Order(o silicon.NICOrder, done func(hits uint64, err error)) {
	if err := e.h.alive(); err != nil {
		done(0, err)
		return
	}
	e.h.tell(asked{Do: "nic", NIC: &o}, func(t *told, err error) { done(t.Hits, err) })
}

// standIn puts a host's ports where its frames come in: at the nodes across its links.
func (f *Fabric) standIn(ctx context.Context, h *away) error {
	for i, p := range f.cfg.Plan.Ports(h.name) {
		n := f.byName[p.Peer.Node]
		if n == nil {
			return fmt.Errorf("%s: %s is in another process, too", p.Ref, p.Peer)
		}
		at, l := n.port(p.Peer.Port), &f.cfg.Plan.Topology.Links[p.Link]
		err := n.loop.Do(ctx, func() {
			at.inlet = silicon.NewWire(inlet{at}, n.loop, &n.frames)
			number := f.cfg.Plan.PortNumber(p.Ref)
			f.ports[number] = silicon.NewPort(p.Ref, number, n.loop, at.inlet, l, &awayEnd{h: h, port: i, rate: uint64(l.Rate)})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
