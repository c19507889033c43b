//go:build linux

package soft

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/testbed/soft/packet"
	"github.com/rocebed/rocebed/testbed/soft/remote"
	"github.com/rocebed/rocebed/topo"
)

// ProcessIfAsked must be called first of all in a program that builds fabrics: hosts with a process of their own are
// that program again. In such a process it doesn't return.
func ProcessIfAsked() {
	if os.Getenv(specEnv) == "" {
		return
	}
	if err := beHost(); err != nil {
		fmt.Fprintln(os.Stderr, "rocebed: a host's process:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// beHost is the life of a host's process.
func beHost() error {
	conn, err := inherited(firstFD)
	if err != nil {
		return err
	}
	files, err := inherited(firstFD + 1)
	if err != nil {
		return err
	}
	var s spec
	if err := gob.NewDecoder(conn).Decode(&s); err != nil {
		return fmt.Errorf("hear what to be: %w", err)
	}
	f := &Fabric{cfg: Config{Dilation: s.Dilation, Within: &Within{}}, epoch: time.Now().Add(s.Epoch - monotonic()), byName: map[string]*node{}}
	h, err := f.embody(&s)
	if err != nil {
		return err
	}
	defer h.close()
	if err := f.JudgeKeepUp(); err != nil {
		return err
	}
	ward := silicon.NewWard(h.silicon)
	devices := make([]remote.Adopter, len(h.silicon.NICs))
	for i, n := range h.silicon.NICs {
		devices[i] = n.Device
	}
	return remote.NewServer(h.loop, devices, conn, files, func(ask []byte, answer func([]byte, error)) { f.serve(h, ward, ask, answer) }).Serve()
}

var _ remote.Adopter = (*rnic.Device)(nil)

func inherited(fd int) (*net.UnixConn, error) {
	file := os.NewFile(uintptr(fd), "socket")
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	file.Close()
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("descriptor %d is no Unix socket", fd)
	}
	return u, nil
}

// embody makes the host in this process.
func (f *Fabric) embody(s *spec) (*host, error) {
	var ports []portConfig
	for i := range s.Model.Ports {
		p, of := &s.Model.Ports[i], s.Ports[i]
		ports = append(ports, portConfig{
			plan: p.Plan, link: &p.Link, room: of.Room, delay: of.Delay,
			open: func(opt packet.Options) (*packet.Socket, error) {
				return packet.Attach(firstFD+2+i, p.Plan.Ref.String(), of.Index, opt)
			},
		})
	}
	made, err := newNode(s.Model.Name, topo.SoftHost, s.CPU, s.Dilation, f.epoch, ports)
	if err != nil {
		return nil, err
	}
	f.nodes = []*node{made}
	made.start()
	h := &host{node: made}
	var silent error
	err = made.loop.Do(background, func() {
		h.silicon, silent = s.Model.Make(silicon.Ground{Loop: made.loop, Frames: &made.frames, Wire: made.wire})
		if silent != nil {
			return
		}
		for i, p := range h.silicon.Ports {
			made.ports[i].to = p
		}
	})
	return h, errors.Join(err, silent)
}

// serve answers what the fabric asks besides verbs, on the host's loop.
func (f *Fabric) serve(h *host, ward *silicon.Ward, ask []byte, answer func([]byte, error)) {
	var a asked
	var t told
	if err := json.Unmarshal(ask, &a); err != nil {
		answer(nil, err)
		return
	}
	say := func(err error) {
		b, jerr := json.Marshal(&t)
		answer(b, errors.Join(err, jerr))
	}
	switch a.Do {
	case "carrier":
		h.silicon.Ports[a.Port].SetCarrier(a.Up)
		say(nil)
	case "rate":
		h.silicon.NICs[a.Port].SetRate(a.Rate)
		say(nil)
	case "nic":
		var err error
		if a.NIC == nil {
			err = errors.New("asked for nothing of a NIC")
		} else {
			t.Hits, err = ward.Do(*a.NIC)
		}
		say(err)
	case "collect":
		c := &collector{f: f}
		c.Host(h.silicon)
		c.pace(h.node)
		t.Samples = c.Samples
		say(errors.Join(c.errs...))
	case "traces":
		t.Traces = h.silicon.Traces()
		say(nil)
	case "judge":
		say(f.JudgeKeepUp())
	case "keepup":
		if err := f.KeepUp(); err != nil {
			t.Problem, t.Slow = err.Error(), errors.Is(err, fabric.ErrSlow)
		}
		say(nil)
	default:
		say(fmt.Errorf("asked to %q", a.Do))
	}
}
