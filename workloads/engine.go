package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// NIC is an RDMA device that workloads may use. Its loop is Device.Loop().
type NIC struct {
	Port     topo.PortRef
	Rail     int
	Device   verbs.Device
	GIDIndex int // the RoCEv2 GID that routes in the fabric
	GID      verbs.GID
}

// Config is what an engine is made of.
type Config struct {
	Topology *topo.Topology
	NICs     []NIC
	Seed     uint64
	// LookAhead is the least fabric time that anything takes from one host to another.
	LookAhead time.Duration
	// ControlTimeout is how long one verbs call (create, modify, destroy) or one phase without
	// traffic may take, in fabric time: a dilated fabric divides what wall time it grants. Default 30 s.
	ControlTimeout time.Duration
	Observer       Observer // may be nil
	// Connected is told of every flow whose queue pairs are in RTS, as Observer is of events, and before the workload starts. Where it returns hear, which is called at
	// once, the workload waits for heard, which may come on any goroutine. May be nil.
	Connected func(Connection) (hear func(heard func()))
	// Watch hears of every end of a queue pair. May be nil.
	Watch Watcher
	// Step is how long GPUs take for steps of collectives; nil: no time at all.
	Step Step
	// Pace is every flow's between NICs.
	Pace Pace
	// Gate is asked, on Observer's loop, once the workloads that start by themselves are connected: time starts, and traffic with it, when it has called
	// open, once, on any goroutine. Nil: at once.
	Gate func(open func())
	// IgnoreCNPs makes queue pairs that no congestion notification slows down, where the device can.
	IgnoreCNPs bool
}

// Engine runs workloads. Its coordinator lives on the loop of the first NIC.
type Engine struct {
	cfg  Config
	x    Exchange
	l    loop.Loop // the coordinator's
	nics map[topo.PortRef]*nic
	list []*nic // in the order of Config.NICs
	runs []*run

	// Owned by the coordinator.
	zero    loop.Time // when the workloads started
	begun   bool      // zero is set, or the gate is asked
	running bool
	pending int // workloads that are not up yet
	done    func(*Report)
	report  Report
	stopped bool

	patience loop.Timer // of Wind
}

// nic is a device in use, with one protection domain for all workloads.
type nic struct {
	NIC
	l  loop.Loop
	pd verbs.PD
	// phantom says that memory needs no bytes: every NIC of the engine can do without.
	phantom bool
	watch   Watcher
	dead    string // why its process is gone; empty: it lives
}

// Report is the outcome of all workloads.
type Report struct {
	Zero    loop.Time // the workloads' time zero, for schedules
	Results []*Result // in the order of the specs
	Err     error     // the engine itself failed: nothing ran, or something was left behind
}

// Passed says whether everything did.
func (r *Report) Passed() bool {
	for _, w := range r.Results {
		if !w.Passed {
			return false
		}
	}
	return r.Err == nil
}

// NewEngine checks the specs against the topology and the NICs at hand. It creates nothing.
func NewEngine(cfg Config, specs []Spec) (*Engine, error) {
	if len(cfg.NICs) == 0 {
		return nil, errors.New("workloads: no NICs")
	}
	if err := CheckAll(specs, cfg.Topology); err != nil {
		return nil, err
	}
	if cfg.ControlTimeout <= 0 {
		cfg.ControlTimeout = 30 * time.Second
	}
	if cfg.Observer == nil {
		cfg.Observer = func(Event) {}
	}
	e := &Engine{
		cfg:  cfg,
		x:    Exchange{cfg.LookAhead},
		l:    cfg.NICs[0].Device.Loop(),
		nics: map[topo.PortRef]*nic{},
	}
	phantom := phantoms(cfg.NICs)
	for _, n := range cfg.NICs {
		s := &nic{NIC: n, l: n.Device.Loop(), phantom: phantom, watch: cfg.Watch}
		e.nics[n.Port] = s
		e.list = append(e.list, s)
	}
	byName := map[string]*run{}
	for i := range specs {
		r, err := newRun(e, &specs[i])
		if err != nil {
			return nil, fmt.Errorf("workload %s: %w", specs[i].Name, err)
		}
		for _, before := range e.runs {
			r.first += before.prog.count()
		}
		e.runs = append(e.runs, r)
		byName[r.spec.Name] = r
	}
	for _, r := range e.runs {
		if r.spec.After != "" {
			byName[r.spec.After].followers = append(byName[r.spec.After].followers, r)
		}
	}
	return e, nil
}

// nic finds a device by its port.
func (e *Engine) nic(p topo.PortRef) (*nic, error) {
	if n := e.nics[p]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("%s has no RDMA device", portName(p))
}

// Start runs all workloads and calls done once, on the coordinator's loop, when every
// resource is gone again. It may be called from any goroutine, once.
func (e *Engine) Start(done func(*Report)) {
	e.l.Post(func() {
		e.done, e.running = done, true
		e.eachNIC("alloc pd", func(n *nic, done func(error)) {
			n.Device.AllocPD(func(pd verbs.PD, err error) {
				n.pd = pd
				done(err)
			})
		}, e.open)
	})
}

// Stop winds the workloads down: nothing new is posted, what is outstanding completes and is
// checked, and Start's done is called. When ctx ends first, queue pairs are moved to the error
// state instead. It may be called from any goroutine, at any time (before Start too: then no traffic flows at all), and doesn't wait.
func (e *Engine) Stop(ctx context.Context) {
	e.l.Post(func() {
		e.stopped = true
		for _, r := range e.runs {
			r.stop()
		}
	})
	context.AfterFunc(ctx, func() {
		e.l.Post(func() {
			for _, r := range e.runs {
				r.abort("stopped before it had wound down")
			}
		})
	})
}

// eachNIC does something on every NIC's loop and calls next on the coordinator's when all
// have answered.
func (e *Engine) eachNIC(what string, do func(*nic, func(error)), next func(error)) {
	left := len(e.list)
	var errs []error
	for _, n := range e.list {
		e.x.Send(e.l, n.l, func() {
			within(n.l, e.cfg.ControlTimeout, portName(n.Port)+": "+what, func(done func(error)) { do(n, done) }, func(err error) {
				e.x.Send(n.l, e.l, func() {
					if err != nil {
						errs = append(errs, err)
					}
					if left--; left == 0 {
						next(errors.Join(errs...))
					}
				})
			})
		})
	}
}

// open brings up every workload that doesn't wait for another.
func (e *Engine) open(err error) {
	if err != nil {
		e.report.Err = err
		e.close()
		return
	}
	for _, r := range e.runs {
		if r.spec.After == "" {
			e.pending++
		}
	}
	for _, r := range e.runs {
		if r.spec.After == "" {
			r.open()
		}
	}
	e.ready(0)
}

// ready counts workloads that are up, or failed to come up; when the last is, time starts.
func (e *Engine) ready(n int) {
	if e.pending -= n; e.pending > 0 || e.begun {
		return
	}
	e.begun = true
	if e.cfg.Gate == nil {
		e.begin()
		return
	}
	e.cfg.Gate(func() { e.l.Post(e.begin) })
}

// begin starts time, and what waits for nothing else.
func (e *Engine) begin() {
	if !e.running { // nothing came up, and all is over
		return
	}
	e.zero = e.l.Now().Add(2 * e.cfg.LookAhead)
	e.report.Zero = e.zero
	e.cfg.Observer(Event{At: e.zero, Kind: EventReady})
	for _, r := range e.runs {
		if r.spec.After == "" {
			r.startAt(e.zero)
		}
	}
	e.settle()
}

// finished is called when a workload has ended and its resources are gone.
func (e *Engine) finished(r *run) {
	for _, f := range r.followers {
		f.follow()
	}
	e.settle()
}

// settle ends the engine's work when no workload is left.
func (e *Engine) settle() {
	for _, r := range e.runs {
		if r.phase != over {
			return
		}
	}
	if e.running {
		e.close()
	}
}

func (e *Engine) close() {
	e.running = false
	e.l.Disarm(&e.patience)
	e.eachNIC("dealloc pd", func(n *nic, done func(error)) {
		if n.pd == nil {
			done(nil)
			return
		}
		n.pd.Dealloc(func(err error) {
			if n.dead != "" { // there is nobody to do it
				err = nil
			}
			done(err)
		})
	}, func(err error) {
		e.report.Err = errors.Join(e.report.Err, err)
		for _, r := range e.runs {
			e.report.Results = append(e.report.Results, r.result)
		}
		e.done(&e.report)
	})
}
