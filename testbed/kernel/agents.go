//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/agent"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// How many frames may wait at a port of the engine. A host's are its queue pairs' throttles together, 64 frames each.
const (
	switchSlots = 8192
	hostSlots   = 1 << 15
	mostFlows   = 1 << 14
)

// AgentIfAsked must be called first of all in a program that builds fabrics: see agent.ProcessIfAsked.
func AgentIfAsked() { agent.ProcessIfAsked() }

// neighbour is what the switch on a host's first link is like; nil: there is none.
func (c *Config) neighbour(host string) *fabric.SwitchModel {
	for _, p := range c.Plan.Ports(host) {
		if c.Plan.Node(p.Peer.Node).Role == topo.Switch {
			m := c.Switches.Of(p.Peer.Node)
			return &m
		}
	}
	return nil
}

// openEngine opens the port engine where the settings take it, and numbers its ports.
func (f *Fabric) openEngine() error {
	why := f.cfg.needsEngine()
	if why == "" && !f.cfg.likesEngine() {
		return nil
	}
	f.numbers = map[topo.PortRef]int{}
	cfg := engine.Config{Testbed: f.cfg.Testbed.Name(), Nodes: len(f.cfg.Plan.Topology.Nodes), Flows: f.cfg.flows}
	for i := range f.cfg.Plan.Topology.Nodes {
		n := &f.cfg.Plan.Topology.Nodes[i]
		for _, p := range f.cfg.Plan.Ports(n.Name) {
			_, l, _ := f.wiring.Link(p.Ref)
			end, _ := f.wiring.CableEnd(p.Ref)
			cfg.MaxIndex = max(cfg.MaxIndex, l.Index, end.Index)
			if f.cfg.made(n) {
				cfg.Ports++
				f.numbers[p.Ref] = cfg.Ports
				cfg.Slots += slotsOf(n)
			}
		}
	}
	e, err := engine.Open(cfg)
	switch {
	case err == nil:
	case why == "" && errors.Is(err, ebpf.ErrNotSupported):
		f.warn(fmt.Sprintf("switches mark by sch_red, which spaces its marks evenly: %v", err))
		return nil
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("this kernel can't have %s: that takes queueing disciplines in eBPF (Linux 6.16 with NET_SCH_BPF): %w", why, err)
	default:
		return err
	}
	f.engine, f.cfg.engine = e, true
	for i := range f.cfg.Plan.Topology.Nodes {
		n := &f.cfg.Plan.Topology.Nodes[i]
		if n.Role != topo.Switch || !f.cfg.made(n) {
			continue
		}
		s, _, err := f.cfg.switchSettings(n, topo.PortRef{})
		if err != nil {
			return err
		}
		if err := e.SetMemory(i, topo.Bytes(s.Shared(silicon.PortConfigs(f.cfg.Plan, f.cfg.Plan.Ports(n.Name))))); err != nil {
			return err
		}
	}
	return nil
}

// index is a node's, among the topology's.
func (f *Fabric) index(node string) int {
	return slices.IndexFunc(f.cfg.Plan.Topology.Nodes, func(n topo.Node) bool { return n.Name == node })
}

// made says whether this backend makes a node.
func (c *Config) made(n *topo.Node) bool {
	k := kindOf(n)
	return k == topo.RxeHost || k == topo.LinuxSwitch
}

func slotsOf(n *topo.Node) int {
	if n.Role == topo.Host {
		return hostSlots
	}
	return switchSlots
}

// place is where a port of the engine is.
func (f *Fabric) place(n *topo.Node, l linux.Link) engine.Place {
	at := engine.Place{Ifindex: l.Index, Slots: slotsOf(n)}
	for i := range f.cfg.Plan.Topology.Nodes {
		if f.cfg.Plan.Topology.Nodes[i].Name == n.Name {
			at.Node = i
		}
	}
	if n.Role == topo.Switch {
		end, _ := f.wiring.CableEnd(topo.PortRef{Node: n.Name, Port: l.Port})
		at.End = end.Index
	}
	return at
}

// marks gives the program that marks what a port sends; nil: none does.
func (f *Fabric) marks(ref topo.PortRef) *ebpf.Program {
	if n := f.cfg.Plan.Node(ref.Node); f.engine == nil || n.Role != topo.Switch || !f.cfg.made(n) {
		return nil
	}
	return f.engine.Mark()
}

// startAgent starts the agent of the engine's ports.
func (f *Fabric) startAgent() (err error) {
	if f.engine == nil {
		return nil
	}
	s := agent.Spec{Dilation: f.cfg.Dilation, Flows: f.cfg.flows}
	var files agent.Files
	defer func() {
		if err != nil {
			for _, file := range files {
				file.Close()
			}
		}
	}()
	for i := range f.cfg.Plan.Topology.Nodes {
		n := &f.cfg.Plan.Topology.Nodes[i]
		if !f.cfg.made(n) {
			continue
		}
		h, _ := f.Host(n.Name).(*host)
		params := f.cfg.dcqcn(n.Name)
		node := agent.Node{Name: n.Name, NICs: h != nil && params != nil}
		for _, past := range []int{1, 0} {
			file, err := packetSocket(f.wiring.Node(n.Name), past)
			if err != nil {
				return err
			}
			files = append(files, file)
		}
		if node.NICs {
			file, err := h.rdmaFile()
			if err != nil {
				return err
			}
			files = append(files, file)
		}
		for k, p := range f.cfg.Plan.Ports(n.Name) {
			_, l, _ := f.wiring.Link(p.Ref)
			peer, _ := f.cfg.Plan.Port(p.Peer)
			link := f.cfg.Plan.Link(p.Ref)
			port := agent.Port{
				Number: f.numbers[p.Ref], Name: p.Ref.String(), Node: len(s.Nodes), Index: l.Index, Peer: f.numbers[p.Peer],
				MAC: roce.MAC(p.MAC), PeerMAC: roce.MAC(peer.MAC), WallRate: uint64(wallRate(link.Rate, f.cfg.Dilation)),
			}
			port.Sends = f.nodes[n.Name].ports.declaration(p.Ref.Port).port.Sends
			if n.Role == topo.Switch {
				port.Watchdog = f.watchdog(n.Name)
			}
			if node.NICs {
				port.NIC = &agent.NIC{Addr: p.Addr.Addr(), Device: h.devs[k].device, Line: uint64(link.Rate), Params: f.leastRate(*params, link)}
			}
			s.Ports = append(s.Ports, port)
		}
		s.Nodes = append(s.Nodes, node)
	}
	f.agent, err = agent.Start(&s, f.engine, files)
	files = nil // they are closed
	return err
}

// Broken is closed when the agent has died; nil: there is none.
func (f *Fabric) Broken() <-chan struct{} {
	if f.agent == nil {
		return nil
	}
	return f.agent.Gone()
}

// Cause is what has broken the fabric.
func (f *Fabric) Cause() error { return f.agentGone() }

// watchdog is a switch's.
func (f *Fabric) watchdog(sw string) agent.Watchdog {
	m := f.cfg.Switches.Of(sw)
	if m.Watchdog == nil {
		return agent.Watchdog{}
	}
	w := agent.Watchdog{
		Detect: f.cfg.Dilation.Wall(m.Watchdog.Detect), Restore: f.cfg.Dilation.Wall(m.Watchdog.Restore),
		Drop: m.Watchdog.Action == "" || m.Watchdog.Action == "drop", Alert: m.Watchdog.Action == "alert",
	}
	if w.Restore == 0 {
		w.Restore = w.Detect
	}
	return w
}

// leastRate keeps the least rate of flows above what wall time can pace.
func (f *Fabric) leastRate(p dcqcn.Params, l *topo.Link) dcqcn.Params {
	out, warning := silicon.LeastRate(p, l, f.cfg.Dilation)
	if warning != "" {
		f.warn(warning)
	}
	return out
}

// packetSocket opens a raw packet socket in a namespace, for sending alone; past is 1 for one past the ports' queues.
func packetSocket(ns *linux.Namespace, past int) (*os.File, error) {
	var fd int
	err := ns.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: open a packet socket: %w", ns.Node(), err)
	}
	file := os.NewFile(uintptr(fd), "packet socket")
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, past); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: send past the queues: %w", ns.Node(), err), file.Close())
	}
	return file, nil
}

// agentGone says that the agent has died; nil: it lives, or there is none.
func (f *Fabric) agentGone() error {
	if f.agent == nil {
		return nil
	}
	select {
	case <-f.agent.Gone():
		return fmt.Errorf("the agent of the fabric (process %d), which pauses and paces, has died: nothing was paused or paced from then on", f.agent.PID())
	default:
		return nil
	}
}
