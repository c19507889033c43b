// Package tc is the traffic control of one port as data: what is declared ([Port]), the qdiscs
// and classes that this asks for ([Tree]), the netlink messages that make them, what the kernel
// says it has, and the difference between the two.
//
// A port's tree, from the device inwards:
//
//	htb 1:            root
//	└ class 1:1       shaper: the link's rate, with Ethernet's overhead
//	  └ class 1:10+p  priority p; strict between priorities
//	    └ red 20+p:   marker, where one is declared
//	      └ bfifo 40+p:   queue: the buffer's bytes; the pause slot replaces it
//
// Only packets that wait for the shaper are in it. Propagation delay and every impairment
// sit on the cable behind the port (package cable), so they never count as queue.
//
// Everything but [Conn] is pure and can be tested without root. Bytes that other tools leave
// out or can't write are written by hand: red with its STAB, which the kernel requires; netem
// with nanoseconds and distributions.
package tc
