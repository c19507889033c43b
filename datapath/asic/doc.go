// Package asic is the software switch: an output-queued switch with one packet memory that its
// ports share, as a state machine on one node's loop.
//
// Frames come in whole at Receive. One is classified (DSCP, then priority, then egress queue
// and ingress priority group), routed by Frame.Dst (ECMP by Frame.Flow and the switch's seed,
// or spray, or the least loaded port), and sent at once where the port is idle: then it costs no buffer and
// no event besides its arrival at the next node. Else it waits in one of the port's eight queues, within what the
// packet memory allows (memory.go), until the scheduler's turn comes (sched.go). PFC is sent
// and obeyed (pause.go), with a watchdog behind it (watchdog.go). What isn't RoCE in struct form
// is looked at in ip.go: ARP, ICMP, neighbour discovery, and ordinary IP, which is forwarded.
//
// All that an operator, or a fault, can set stands in Settings, and Apply changes it at run time.
// The package knows neither names of nodes beyond its own, nor whether time is virtual.
package asic
