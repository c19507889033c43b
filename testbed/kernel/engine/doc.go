// Package engine makes ports behave as a switch's and a NIC's do, inside the kernel: a queueing discipline in eBPF that
// shapes to the line's rate, keeps a queue a priority, serves them, keeps the accounts of a packet memory, obeys pauses and paces
// flows; a program behind it that marks as frames depart; and one in front of it that takes pause frames and, at hosts, what
// DCQCN asks for.
//
//	frame ─▶ [arrive] node … ─▶ qdisc "rocebed": account ─▶ queue ─▶ its turn ─▶ line ─▶ cable [mark]
//	           │ PFC: paused until                    │ XOFF, XON
//	           └── events ◀───────────────────────────┘
//
// What is declared of a port, what it is doing, and what happens to it are three tables and a ring that user space shares with the
// programs (testbed/kernel/bpf/port.h has their shapes). The kernel sends a pause's first frame, made of a clone of
// one that came in; who sees an XOFF in the ring repeats it and ends the pause. As long as nobody renews the lease, ports run as if nothing was paused or paced.
//
// All times are wall times of CLOCK_MONOTONIC. The engine needs Linux 6.16 or later with NET_SCH_BPF.
package engine
