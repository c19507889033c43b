//go:build linux && cgo

package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs/ibv"
)

type trial struct {
	tb    *linux.Testbed
	w     *linux.Wiring
	plan  *topo.Plan
	d     loop.Dilation
	epoch time.Time
	hosts []fabric.Host
	devs  []string
}
type trialHost struct {
	name string
	l    *loop.Real
	nics []fabric.NIC
}

func (h *trialHost) Name() string                { return h.name }
func (h *trialHost) Kind() topo.Kind             { return topo.RxeHost }
func (h *trialHost) Close(context.Context) error { return nil }
func (h *trialHost) Loop() loop.Loop             { return h.l }
func (h *trialHost) NICs() []fabric.NIC          { return h.nics }

func (t *trial) Topology() *topo.Topology { return t.plan.Topology }
func (t *trial) Plan() *topo.Plan         { return t.plan }
func (t *trial) Dilation() loop.Dilation  { return t.d }
func (t *trial) Epoch() time.Time         { return t.epoch }
func (t *trial) Hosts() []fabric.Host     { return t.hosts }
func (t *trial) Host(n string) fabric.Host {
	return nil
}
func (t *trial) Injector() fabric.Injector { return trialInj{} }
func (t *trial) Collect(ctx context.Context) ([]metrics.Sample, error) {
	var out []metrics.Sample
	for _, h := range t.hosts {
		for _, n := range h.NICs() {
			for _, c := range []string{"sent_pkts", "out_of_seq_request", "duplicate_request", "completer_retry_err", "retry_exceeded_err"} {
				b, _ := exec.Command("cat", "/sys/class/infiniband/"+n.Device.Name()+"/ports/1/hw_counters/"+c).Output()
				var v float64
				fmt.Sscan(string(b), &v)
				out = append(out, metrics.Sample{Name: c, Labels: []string{n.Port.Node, n.Port.Port}, Value: v})
			}
		}
	}
	return out, nil
}
func (t *trial) KeepUp() error      { return nil }
func (t *trial) Warnings() []string { return nil }
func (t *trial) Close(ctx context.Context) error {
	var errs []error
	for _, h := range t.hosts {
		for _, n := range h.NICs() {
			ch := make(chan error, 1)
			n.Device.Loop().Post(func() { n.Device.Close(func(err error) { ch <- err }) })
			errs = append(errs, <-ch)
		}
		h.(*trialHost).l.Close()
	}
	for _, d := range t.devs {
		out, err := exec.Command("rdma", "link", "del", d).CombinedOutput()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s", out))
		}
	}
	errs = append(errs, t.tb.Close(ctx))
	return errors.Join(errs...)
}

type trialInj struct{}

func (trialInj) Check(faults.Spec) error { return nil }
func (trialInj) Apply(s faults.Spec, done func(fabric.Applied, error)) {
	done(nil, errors.New("trial: no faults"))
}

func init() {
	Register(&Builder{Backend: Kernel, Capable: func(context.Context) error {
		return exec.Command("modinfo", "rdma_rxe").Run()
	}, Calibrate: func(context.Context, *Scenario) (loop.Dilation, string, error) { return 1024, "trial", nil },
		Build: func(ctx context.Context, c BuildConfig) (fabric.Fabric, error) {
			tb, err := linux.Acquire(ctx, c.Testbed)
			if err != nil {
				return nil, err
			}
			t := &trial{tb: tb, plan: c.Scenario.Plan, d: c.Dilation, epoch: time.Now()}
			t.w, err = tb.Wire(ctx, c.Scenario.Plan, linux.WireOptions{Progress: func(s string, a, b int) { c.Step(fmt.Sprintf("%s %d/%d", s, a, b)) }})
			if err != nil {
				return nil, errors.Join(err, tb.Close(ctx))
			}
			for _, n := range t.plan.Topology.Hosts() {
				h := &trialHost{name: n.Name, l: loop.NewReal(t.d, t.epoch)}
				ns := t.w.Node(n.Name)
				for i, p := range n.Ports {
					dev := fmt.Sprintf("rx%s%d", n.Name, i)
					l, _ := ns.Link(p.Name)
					var out []byte
					err := ns.Do(func() (err error) {
						out, err = exec.Command("rdma", "link", "add", dev, "type", "rxe", "netdev", l.Name).CombinedOutput()
						return err
					})
					if err != nil {
						return nil, fmt.Errorf("rdma link add: %v %s", err, out)
					}
					t.devs = append(t.devs, dev)
					d, err := ibv.Open(h.l, dev, ibv.Options{Dilation: t.d})
					if err != nil {
						return nil, err
					}
					pp, _ := t.plan.Port(topo.PortRef{Node: n.Name, Port: p.Name})
					want := netip.AddrFrom16(pp.Addr.Addr().As16())
					idx := -1
					for gi, g := range d.GIDs() {
						if g == want {
							idx = gi
						}
					}
					if idx < 0 {
						return nil, fmt.Errorf("%s: no gid %v in %v", dev, want, d.GIDs())
					}
					h.nics = append(h.nics, fabric.NIC{Port: topo.PortRef{Node: n.Name, Port: p.Name}, Device: d, GIDIndex: idx, GID: d.GIDs()[idx]})
				}
				t.hosts = append(t.hosts, h)
			}
			return t, nil
		}})
}
