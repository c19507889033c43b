// Package agent is what ports of a kernel fabric have beside their programs in the kernel (package engine): it sends pause frames when ingress
// groups ask for them, and is the NICs' half of DCQCN, for applications that know nothing of it. It is a notification point where
// marked packets arrive and sends CNPs for them; and a reaction point where CNPs arrive, and gives the queue pairs' flows a rate.
//
//	engine's ring ──▶ XOFF, XON ──▶ link.Pauser ──▶ 802.1Qbb frame, past the port's queues
//	              ──▶ marked packet ──▶ dcqcn.NP ──▶ CNP, through the host's queues
//	              ──▶ CNP ──▶ dcqcn.RP ──▶ rate of the queue pair's flows in the engine
//
// Who talks to whom is in the kernel's list of queue pairs (RDMA_NL). The agent of a fabric is a process of its own, so that
// nothing else delays it. While it lives it renews the engine's lease; when it dies, ports run on as if nothing was paused or paced,
// and its fabric learns of it.
package agent
