// Package sim is a fabric of soft hosts and soft switches in memory and in virtual time: the same software RNICs and
// switches as the soft backend's, without a socket, a process or a clock. It needs no root and no operating
// system in particular, and what happens in it depends on the scenario and its seed alone.
//
// Every node is a node of one loop.Virtual, a wire is an event on the far node after the link's delay, and a frame stays
// a struct all the way. The shortest delay of a link is the look-ahead: nodes may be handled by several
// cores for so long before they hear of each other.
//
// Time passes while the fabric is driven (fabric.Virtual). Between drives all may be read.
package sim
