// Package packet is raw Ethernet for software nodes: AF_PACKET sockets on the interfaces of a
// fabric, many frames a system call out and none a frame in, and one place to wait for all of a
// node's sockets, for its timers to the microsecond, and for a call from another goroutine.
//
// It is Linux only and knows frames as bytes alone. A socket belongs to one goroutine; what may
// be called from others says so.
package packet
