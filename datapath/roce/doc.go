// Package roce is what goes over the wire: Ethernet with 802.1Q, ARP, IPv4 and IPv6 with ECN and
// DSCP, UDP, the InfiniBand transport headers of RC, UC and UD as RoCEv2 carries them, the
// congestion notification packet, the invariant CRC, and the pause frames of 802.3x and 802.1Qbb.
// PSN arithmetic lives here too.
//
// There are two forms of a packet:
//
//   - View is the wire form: where the headers lie in a frame that somebody else owns. Parse finds
//     them, accessors read them, and the Set methods rewrite TTL, ECN, DSCP, priority and addresses
//     in place with checksums updated incrementally (RFC 1624), as a switch does. Nothing is copied.
//   - Packet is the struct form of a RoCEv2 packet: header fields and a reference to the payload.
//     A simulation hands Packets around and never makes bytes of them; Append writes the wire form
//     and Decode reads it. What a Packet doesn't hold is derived (lengths, pad, checksums, ICRC) or
//     sent as the specification has it (reserved bits and pad 0, UDP checksum 0).
//
// Append functions add a header to a caller's buffer as append does. Nothing here allocates but for
// a buffer that is too small, a String, and an error of a Packet that can't be encoded.
//
// Section numbers are those of the InfiniBand Architecture Specification, volume 1; A17 is its
// annex on RoCEv2. The package imports no other room, touches no operating system, keeps no state,
// and never judges: what a packet means to a queue pair is for rnic, what to do with it for asic.
package roce
