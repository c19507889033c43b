//go:build linux

package packet

import (
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/roce"
)

// RoCE passes what a RNIC takes: RoCEv2 in whole IPv4 and IPv6 packets, and MAC control frames. All else is
// the host's own stack's.
var RoCE = func() []unix.SockFilter {
	const (
		half = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		byt  = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS
		jeq  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		jset = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret  = unix.BPF_RET | unix.BPF_K
	)
	at := func(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }
	// when goes on by yes instructions if the register is k, by no if it isn't.
	when := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: jeq, Jt: yes, Jf: no, K: k}
	}
	const eth = roce.EthernetLen
	return []unix.SockFilter{
		0:  at(half, 12),
		1:  when(uint32(roce.EtherTypeMACControl), 13, 0), // → 15
		2:  when(uint32(roce.EtherTypeIPv4), 0, 7),        // → 10
		3:  at(byt, eth+9),
		4:  when(roce.ProtocolUDP, 0, 9), // → 14
		5:  at(half, eth+6),
		6:  {Code: jset, Jt: 7, K: 0x3fff},                 // a fragment → 14
		7:  at(unix.BPF_LDX|unix.BPF_B|unix.BPF_MSH, eth),  // X: the header's length
		8:  at(unix.BPF_LD|unix.BPF_H|unix.BPF_IND, eth+2), // the UDP destination port
		9:  when(roce.Port, 5, 4),                          // → 15, 14
		10: when(uint32(roce.EtherTypeIPv6), 0, 3),         // → 14
		11: at(byt, eth+6),                                 // next header
		12: {Code: jeq, Jt: 0, Jf: 1, K: roce.ProtocolUDP}, // → 14
		13: {Code: unix.BPF_JMP | unix.BPF_JA, K: 2},       // → 16
		14: at(ret, 0),
		15: at(ret, 0xffff),
		16: at(half, eth+roce.IPv6Len+2),
		17: when(roce.Port, 0, 1),
		18: at(ret, 0xffff),
		19: at(ret, 0),
	}
}()
