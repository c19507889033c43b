// Package rnic is the software RNIC: an RDMA device with one port, the verbs that drive it, the
// InfiniBand transport, DCQCN's reaction and notification points, and the hardware datapath
// stage by stage, as state machines on one host's loop.
//
// Down the stack: a verbs call changes objects (device, qp, cq, srq, mr) and posts work queue
// elements; the requester (and the responder, for READ responses) is a source that the port
// pulls packets from, one at a time, when pacing, PFC and the line allow; packets leave as
// link.Frames in struct form on a link.Wire. Up: Receive takes frames that arrived, checks
// ICRC, finds the QP and gives the packet to its requester or responder, which place data,
// send ACKs and make completions. Hardware stages are arithmetic on times (hw), not events.
//
// Nothing here knows whether time is virtual or real, or whether frames become bytes.
package rnic
