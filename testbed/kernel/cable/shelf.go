//go:build linux

package cable

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/linux"
)

// shelf is where packets wait on one direction of a cable (packet.Shelf says until when), in memory that it shares with the program at the end
// of the chain. The program puts them there and takes those that have been overtaken often enough; here those are taken whose time is over,
// and all when the fault ends. Whoever changes a slot's state owns it.
type shelf struct {
	maps  []*ebpf.Map
	slots []slot
	books *books
	raw   [][]byte
	out   int

	socket int // sends into the far end's delay line; -1: none
	wait   *ringbuf.Reader
	done   sync.WaitGroup

	mu  sync.Mutex
	err error
}

// As in bpf/settle.c.
type slot struct {
	state, flow, left, len uint32
	turn, when             uint64
	copies, _              uint32
	bytes                  [room]byte
}

type books struct {
	turns      uint64
	held, high uint32
	full       uint64
}

const (
	shelfSlots = 512
	room       = 9232
)

// The states of a slot that are known here.
const (
	slotFree  = 0
	slotHeld  = 2
	slotTaken = 4
)

func newShelf(slots, ledger, waiting *ebpf.Map, out int) (_ *shelf, err error) {
	s := &shelf{maps: []*ebpf.Map{slots, ledger, waiting}, out: out, socket: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	a, err := s.share(slots, shelfSlots*int(unsafe.Sizeof(slot{})))
	if err != nil {
		return nil, err
	}
	b, err := s.share(ledger, unix.Getpagesize())
	if err != nil {
		return nil, err
	}
	s.slots, s.books = unsafe.Slice((*slot)(a), shelfSlots), (*books)(b)
	return s, nil
}

// share maps a map's memory.
func (s *shelf) share(m *ebpf.Map, size int) (unsafe.Pointer, error) {
	page := unix.Getpagesize()
	b, err := unix.Mmap(m.FD(), 0, (size+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the shelf's memory: %w", err)
	}
	s.raw = append(s.raw, b)
	return unsafe.Pointer(&b[0]), nil
}

// open gives the shelf a way into the far end's delay line, and begins to look after what waits for a time.
func (s *shelf) open(ns *linux.Namespace) error {
	err := ns.Do(func() (err error) {
		s.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("open packet socket: %w", err)
	}
	if s.wait, err = ringbuf.NewReader(s.maps[2]); err != nil {
		return fmt.Errorf("read what waits: %w", err)
	}
	s.done.Go(s.look)
	return nil
}

// alarm is a slot, as it is now, and the time at which its packet goes on.
type alarm struct {
	slot       uint32
	turn, when uint64
}

// look takes packets off the shelf whose time is over, until the reader is closed.
func (s *shelf) look() {
	var alarms []alarm // the next one first
	var r ringbuf.Record
	for {
		if len(alarms) > 0 {
			s.wait.SetDeadline(time.Now().Add(time.Duration(alarms[0].when - min(monotonic(), alarms[0].when))))
		} else {
			s.wait.SetDeadline(time.Time{})
		}
		switch err := s.wait.ReadInto(&r); {
		case errors.Is(err, ringbuf.ErrClosed):
			return
		case err == nil && len(r.RawSample) >= 4:
			i := *(*uint32)(unsafe.Pointer(&r.RawSample[0]))
			sl := &s.slots[i%shelfSlots]
			if atomic.LoadUint32(&sl.state) == slotHeld {
				a := alarm{i, sl.turn, sl.when}
				at, _ := slices.BinarySearchFunc(alarms, a, func(x, y alarm) int { return cmp.Or(cmp.Compare(x.when, y.when), cmp.Compare(x.turn, y.turn)) })
				alarms = slices.Insert(alarms, at, a)
			}
		}
		for len(alarms) > 0 && alarms[0].when <= monotonic() {
			s.expire(alarms[0])
			alarms = alarms[1:]
		}
	}
}

func monotonic() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return uint64(t.Nano())
}

// expire sends a packet whose time is over, unless it has gone on already, and then those that it has overtaken as the last.
func (s *shelf) expire(a alarm) {
	sl := &s.slots[a.slot%shelfSlots]
	if sl.turn != a.turn || !atomic.CompareAndSwapUint32(&sl.state, slotHeld, slotTaken) {
		return
	}
	flow := sl.flow
	s.send(sl)
	s.pass(flow)
}

// pass is packet.Shelf's Pass.
func (s *shelf) pass(flow uint32) {
	for passed := 1; passed > 0; passed-- {
		var due []*slot
		for i := range s.slots[:min(atomic.LoadUint32(&s.books.high), shelfSlots)] {
			sl := &s.slots[i]
			if atomic.LoadUint32(&sl.state) != slotHeld || sl.flow != flow || atomic.LoadUint32(&sl.left) == 0 {
				continue
			}
			if atomic.AddUint32(&sl.left, ^uint32(0)) == 0 && atomic.CompareAndSwapUint32(&sl.state, slotHeld, slotTaken) {
				due = append(due, sl)
			}
		}
		slices.SortFunc(due, func(x, y *slot) int { return cmp.Compare(x.turn, y.turn) })
		for _, sl := range due {
			s.send(sl)
			passed++
		}
	}
}

// send sends a packet and its copies, and frees its slot.
func (s *shelf) send(sl *slot) {
	for range sl.copies + 1 {
		if err := unix.Sendto(s.socket, sl.bytes[:min(sl.len, room)], 0, &unix.SockaddrLinklayer{Ifindex: s.out}); err != nil {
			s.note(fmt.Errorf("send on a packet that was held: %w", err))
		}
	}
	atomic.StoreUint32(&sl.state, slotFree)
	atomic.AddUint32(&s.books.held, ^uint32(0))
}

func (s *shelf) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// drain sends all that is held. The program must have left the chain.
func (s *shelf) drain() {
	var all []*slot
	for i := range s.slots {
		if sl := &s.slots[i]; atomic.CompareAndSwapUint32(&sl.state, slotHeld, slotTaken) {
			all = append(all, sl)
		}
	}
	slices.SortFunc(all, func(x, y *slot) int { return cmp.Compare(x.turn, y.turn) })
	for _, sl := range all {
		s.send(sl)
	}
}

// failed says what could not be kept, or sent on.
func (s *shelf) failed() error {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if n := atomic.LoadUint64(&s.books.full); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d packets could not be held back: there is room for %d", n, shelfSlots))
	}
	return err
}

// reset forgets what went wrong.
func (s *shelf) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
	atomic.StoreUint64(&s.books.full, 0)
}

func (s *shelf) close() error {
	var errs []error
	if s.wait != nil {
		errs = append(errs, s.wait.Close())
		s.done.Wait()
	}
	if s.socket >= 0 {
		errs = append(errs, unix.Close(s.socket))
	}
	for _, b := range s.raw {
		errs = append(errs, unix.Munmap(b))
	}
	for _, m := range s.maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
