//go:build linux

package packet

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is memory that the kernel puts frames into (TPACKET_V2): no system call and no buffer of
// a socket's a frame. Of the three versions it is the one that shows each frame at once: the third collects frames into
// blocks for at least a jiffy. On two processors it carried a quarter more than recvmmsg between
// the same interfaces.
type ring struct {
	mem      []byte
	frame    int // bytes of a slot
	perBlock int
	slots    int

	next int // the slot that comes in next
	held int // slots before next that are not given back

	oldest atomic.Int64 // the first slot that is not given back, for others
}

const (
	ringBlock = 64 << 10
	// macAt is where a frame begins in its slot at most: header and address, aligned, what is
	// reserved (tpacket_rcv, net/packet/af_packet.c).
	macAt = 96
	// reserved is room in front of a frame for the VLAN tag that the kernel took out of it.
	reserved = 4
	// smallestRing holds a few batches of the largest frames.
	smallestRing = 1 << 20
	largestRing  = 64 << 20
)

func (r *ring) make(fd, mtu, room int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_RESERVE, reserved); err != nil {
		return err
	}
	r.frame = (macAt + 14 + mtu + 63) &^ 63
	if r.frame > ringBlock {
		return fmt.Errorf("an MTU of %d is above %d", mtu, ringBlock-macAt-14)
	}
	r.perBlock = ringBlock / r.frame
	blocks := (min(max(room, smallestRing), largestRing) + ringBlock - 1) / ringBlock
	r.slots = blocks * r.perBlock
	req := unix.TpacketReq{Block_size: ringBlock, Block_nr: uint32(blocks), Frame_size: uint32(r.frame), Frame_nr: uint32(r.slots)}
	if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return fmt.Errorf("%d blocks of %d bytes: %w", blocks, ringBlock, err)
	}
	mem, err := unix.Mmap(fd, 0, blocks*ringBlock, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	r.mem = mem
	return nil
}

func (r *ring) close() error {
	if r.mem == nil {
		return nil
	}
	err := unix.Munmap(r.mem)
	r.mem = nil
	if err != nil {
		return errors.Join(errors.New("unmap receive ring"), err)
	}
	return nil
}

func (r *ring) header(slot int) *unix.Tpacket2Hdr {
	return (*unix.Tpacket2Hdr)(unsafe.Pointer(&r.mem[slot/r.perBlock*ringBlock+slot%r.perBlock*r.frame]))
}

func status(h *unix.Tpacket2Hdr) uint32 { return atomic.LoadUint32(&h.Status) }

// ready says whether a frame has come in.
func (r *ring) ready() bool {
	return r.held < r.slots && status(r.header(r.next))&unix.TP_STATUS_USER != 0
}

// Next is the next frame that came in, nil when there is none, and when it came by the machine's real-time clock. The bytes,
// which may be changed, stay until Release gives them back to the kernel. Frames that are longer than the MTU come cut.
func (s *Socket) Next() (frame []byte, at time.Duration) {
	r := &s.ring
	if !r.ready() {
		return nil, 0
	}
	h := r.header(r.next)
	start, n := int(h.Mac), int(h.Snaplen)
	p := unsafe.Slice((*byte)(unsafe.Pointer(h)), r.frame)
	if status(h)&unix.TP_STATUS_VLAN_VALID != 0 && n >= 12 {
		tag := [4]byte{byte(h.Vlan_tpid >> 8), byte(h.Vlan_tpid), byte(h.Vlan_tci >> 8), byte(h.Vlan_tci)}
		if status(h)&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
			tag[0], tag[1] = 0x81, 0x00
		}
		copy(p[start-reserved:], p[start:start+12])
		copy(p[start-reserved+12:], tag[:])
		start, n = start-reserved, n+reserved
	}
	if r.next++; r.next == r.slots {
		r.next = 0
	}
	r.held++
	return p[start : start+n : start+n], time.Duration(h.Sec)*time.Second + time.Duration(h.Nsec)
}

// Held is how many frames were taken and not given back.
func (s *Socket) Held() int { return s.ring.held }

// Release gives the oldest n frames back.
func (s *Socket) Release(n int) {
	r := &s.ring
	at := r.next - r.held
	if at < 0 {
		at += r.slots
	}
	for range n {
		atomic.StoreUint32(&r.header(at).Status, unix.TP_STATUS_KERNEL)
		if at++; at == r.slots {
			at = 0
		}
	}
	r.held -= n
	r.oldest.Store(int64(at))
}

// Crowded says that three quarters of the ring are taken: who sends more now risks that it is dropped. It may be
// called from any goroutine, until the socket is closed.
func (s *Socket) Crowded() bool {
	r := &s.ring
	at := int(r.oldest.Load()) + r.slots/4*3
	if at >= r.slots {
		at -= r.slots
	}
	return status(r.header(at))&unix.TP_STATUS_USER != 0 // the kernel fills the slots in order
}
