//go:build linux

package remote

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Adopter is a device that can be given memory that lies elsewhere.
type Adopter interface {
	verbs.Device
	// AdoptMemory is AllocMemory with bytes that are there already.
	AdoptMemory(b []byte, kind verbs.MemoryKind) (verbs.Memory, error)
}

// Server serves the devices of one loop.
type Server struct {
	loop    loop.Loop
	devices []Adopter
	conn    *net.UnixConn
	files   *net.UnixConn // memory comes by this one
	out     *bufio.Writer
	enc     *gob.Encoder
	other   func([]byte, func([]byte, error))

	mems  map[uint32]*mapped
	pds   map[uint32]verbs.PD
	mrs   map[uint32]verbs.MR
	mws   map[uint32]verbs.MW
	cqs   map[uint32]verbs.CQ
	qps   map[uint32]verbs.QP
	srqs  map[uint32]verbs.SRQ
	ahs   map[uint32]verbs.AH
	qpIDs map[verbs.QP]uint32
	cqIDs map[verbs.CQ]uint32
	srqID map[verbs.SRQ]uint32
	byNum map[uint32]uint32 // QP number to ours; numbers of different devices may collide, then the younger counts
	keys  map[uint32]uint32 // of windows, as the client knows them
	wcs   []verbs.WC

	inline map[int]verbs.Memory // by device: where inline data lies while it is posted
}

// mapped is memory that both processes have.
type mapped struct {
	verbs.Memory
	bytes []byte
}

// NewServer serves devices over a connection; files is a second one for descriptors. other handles what is not
// verbs, on the loop, and answers when it likes.
func NewServer(l loop.Loop, devices []Adopter, conn, files *net.UnixConn, other func(ask []byte, answer func([]byte, error))) *Server {
	s := &Server{
		loop: l, devices: devices, conn: conn, files: files, other: other,
		mems: map[uint32]*mapped{}, pds: map[uint32]verbs.PD{}, mrs: map[uint32]verbs.MR{}, mws: map[uint32]verbs.MW{},
		cqs: map[uint32]verbs.CQ{}, qps: map[uint32]verbs.QP{}, srqs: map[uint32]verbs.SRQ{}, ahs: map[uint32]verbs.AH{},
		qpIDs: map[verbs.QP]uint32{}, cqIDs: map[verbs.CQ]uint32{}, srqID: map[verbs.SRQ]uint32{}, byNum: map[uint32]uint32{}, keys: map[uint32]uint32{},
		wcs: make([]verbs.WC, 64), inline: map[int]verbs.Memory{},
	}
	s.out = bufio.NewWriter(conn)
	s.enc = gob.NewEncoder(s.out)
	return s
}

// Serve says what the devices are and serves until the other end is gone; that is no error.
func (s *Server) Serve() error {
	abouts := make([]About, len(s.devices))
	ready := make(chan error, 1)
	s.loop.Post(func() {
		for i, d := range s.devices {
			abouts[i] = About{d.Name(), d.Attr(), d.Port(), d.GIDs()}
			d.OnAsync(func(e verbs.AsyncEvent) { s.async(i, e) })
		}
		err := s.enc.Encode(abouts)
		if err == nil {
			err = s.out.Flush()
		}
		ready <- err
	})
	if err := <-ready; err != nil {
		return err
	}
	dec := gob.NewDecoder(bufio.NewReader(s.conn))
	for {
		r := new(request)
		if err := dec.Decode(r); err != nil {
			return nil
		}
		s.loop.Post(func() { s.handle(r) })
	}
}

func (s *Server) say(a *answer) {
	if s.enc.Encode(a) == nil {
		_ = s.out.Flush() // who hears nothing any more is gone, which Serve notices
	}
}

// done makes the callback of a call without a result.
func (s *Server) done(seq uint64, then func()) func(error) {
	return func(err error) {
		a := &answer{Seq: seq}
		a.fail(err)
		if err == nil && then != nil {
			then()
		}
		s.say(a)
	}
}

func (a *answer) fail(err error) {
	if err != nil {
		a.Failed, a.Err = true, err.Error()
	}
}

// made makes the callback of a call that makes something.
func made[V any](s *Server, seq uint64, take func(V, *answer)) func(V, error) {
	return func(v V, err error) {
		a := &answer{Seq: seq}
		if a.fail(err); err == nil {
			take(v, a)
		}
		s.say(a)
	}
}

func (s *Server) async(device int, e verbs.AsyncEvent) {
	a := &answer{Async: true, Device: device, Type: e.Type}
	switch {
	case e.QP != nil:
		a.Object = s.qpIDs[e.QP]
		a.States = []qpState{{a.Object, e.QP.State()}}
	case e.SRQ != nil:
		a.Object = s.srqID[e.SRQ]
	case e.CQ != nil:
		a.Object = s.cqIDs[e.CQ]
	}
	s.say(a)
}

// adopt takes memory over that the client has sent.
func (s *Server) adopt(r *request) (*mapped, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := s.files.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, fmt.Errorf("receive memory: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("receive memory: %d control messages, %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("receive memory: %d descriptors, %w", len(fds), err)
	}
	defer unix.Close(fds[0])
	b, err := unix.Mmap(fds[0], 0, r.N, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map memory: %w", err)
	}
	m, err := s.devices[r.Device].AdoptMemory(b, verbs.MemoryKind(r.Kind))
	if err != nil {
		_ = unix.Munmap(b)
		return nil, err
	}
	return &mapped{m, b}, nil
}

func (m *mapped) free() error {
	err := m.Free()
	if err == nil {
		err = unix.Munmap(m.bytes)
	}
	return err
}
