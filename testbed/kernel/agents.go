//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/kernel/agent"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// AgentIfAsked must be called first of all in a program that builds fabrics: see agent.ProcessIfAsked.
func AgentIfAsked() { agent.ProcessIfAsked() }

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
		node := agent.Node{Name: n.Name, NICs: h != nil && f.cfg.dcqcn(n.Name) != nil}
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
		ports, err := f.agentPorts(n, h, node.NICs)
		if err != nil {
			return err
		}
		for _, p := range ports {
			p.Node = len(s.Nodes)
			s.Ports = append(s.Ports, p)
		}
		s.Nodes = append(s.Nodes, node)
	}
	f.agent, err = agent.Start(&s, f.engine, files)
	files = nil // they are closed
	return err
}

// agentPorts are a node's ports as the agent has them; nics: they are NICs with DCQCN, of a host.
func (f *Fabric) agentPorts(n *topo.Node, h *host, nics bool) (ports []agent.Port, err error) {
	var dog agent.Watchdog
	if n.Role == topo.Switch {
		s, _, err := f.cfg.switchSettings(n, topo.PortRef{})
		if err != nil {
			return nil, err
		}
		dog = f.watchdogOf(s.Watchdog)
	}
	for i, p := range f.cfg.Plan.Ports(n.Name) {
		_, l, _ := f.wiring.Link(p.Ref)
		peer, _ := f.cfg.Plan.Port(p.Peer)
		link := f.cfg.Plan.Link(p.Ref)
		port := agent.Port{
			Number: f.numbers[p.Ref], Name: p.Ref.String(), Index: l.Index, Peer: f.numbers[p.Peer], Watchdog: dog,
			MAC: roce.MAC(p.MAC), PeerMAC: roce.MAC(peer.MAC), WallRate: uint64(wallRate(link.Rate, f.cfg.Dilation)),
			Sends: f.nodes[n.Name].ports.declaration(p.Ref.Port).port.Sends,
		}
		if nics {
			port.NIC = &agent.NIC{Addr: p.Addr.Addr(), Device: h.devs[i].device, Line: uint64(link.Rate), Params: f.leastRate(*f.cfg.dcqcn(n.Name), link)}
		}
		ports = append(ports, port)
	}
	return ports, nil
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

// watchdogOf is a switch's watchdog as its agent has it.
func (f *Fabric) watchdogOf(w asic.Watchdog) agent.Watchdog {
	if w.Detect == 0 {
		return agent.Watchdog{}
	}
	wall := f.cfg.Dilation.Wall
	return agent.Watchdog{Detect: wall(w.Detect), Restore: wall(w.Restore), Drop: w.Action == asic.StormDrop, Alert: w.Action == asic.StormAlert}
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
