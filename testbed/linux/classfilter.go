//go:build linux

package linux

import (
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
)

// classFilter is a socket filter that lets all packets of some classes pass, and of others only those that take more than an opcode to tell
// apart: an acknowledgement and a NAK, what has a VLAN tag, IP options or IPv6 extensions. Empty: all pass.
func classFilter(class packet.Class) []unix.SockFilter {
	if class&packet.IP != 0 {
		return nil
	}
	const (
		load1, load2 = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		equal        = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		ret          = unix.BPF_RET | unix.BPF_K
		all          = 0xffffffff
		ipv6Header   = roce.EthernetLen + roce.IPv6Len
	)
	// behind decides by the UDP header at an offset and the opcode behind it.
	behind := func(udp uint32) []unix.SockFilter {
		p := []unix.SockFilter{{Code: load2, K: udp + 2}, {Code: equal, Jt: 1, K: roce.Port}, {Code: ret}, {Code: load1, K: udp + roce.UDPLen}}
		for op := range 256 {
			if couldBe(roce.Opcode(op), class) {
				p = append(p, unix.SockFilter{Code: equal, Jf: 1, K: uint32(op)}, unix.SockFilter{Code: ret, K: all})
			}
		}
		return append(p, unix.SockFilter{Code: ret})
	}
	v4 := append([]unix.SockFilter{
		{Code: load1, K: roce.EthernetLen}, {Code: equal, Jt: 1, K: 0x45}, {Code: ret, K: all}, // options
		{Code: load1, K: roce.EthernetLen + 9}, {Code: equal, Jt: 1, K: unix.IPPROTO_UDP}, {Code: ret},
	}, behind(roce.EthernetLen+20)...)
	v6 := append([]unix.SockFilter{
		{Code: load1, K: roce.EthernetLen + 6}, {Code: equal, Jt: 1, K: unix.IPPROTO_UDP}, {Code: ret, K: all}, // extensions
	}, behind(ipv6Header)...)
	const head = 8 // instructions before v4
	filter := []unix.SockFilter{
		{Code: load2, K: 12},
		{Code: equal, Jf: 1, K: unix.ETH_P_IP}, {Code: unix.BPF_JMP | unix.BPF_JA, K: head - 3},
		{Code: equal, Jf: 1, K: unix.ETH_P_IPV6}, {Code: unix.BPF_JMP | unix.BPF_JA, K: head - 5 + uint32(len(v4))},
		{Code: equal, Jf: 1, K: unix.ETH_P_8021Q}, {Code: ret, K: all},
		{Code: ret}, // no IP
	}
	return append(append(filter, v4...), v6...)
}

// couldBe says whether a packet with an opcode could be of a class, whatever else it has.
func couldBe(op roce.Opcode, class packet.Class) bool {
	for syndrome := range 256 {
		f := packet.Facts{RoCE: true, Opcode: op, Syndrome: roce.Syndrome(syndrome)}
		if f.Class()&class != 0 {
			return true
		}
	}
	return false
}
