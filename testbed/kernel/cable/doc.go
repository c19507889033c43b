// Package cable is what lies between two ports: propagation delay, and everything that can go
// wrong on the way.
//
// A cable is a pair of interfaces in a namespace of its own, each the far end of a port's veth
// pair. What arrives from a port is handed across by a program:
//
//	port A ═ veth ═ a ──[stages]──[forward]──▶ b (netem: delay) ═ veth ═ port B
//	port A ═ veth ═ a (netem: delay) ◀──[forward]──[stages]── b ═ veth ═ port B
//
// So a packet meets the cable after it has been serialised by the sending port's shaper and
// before the receiving node (and a capture there) sees it, as on a real one. Nothing on the
// cable counts as queue, ports lose their carrier on both sides when it is cut, and their
// routes, neighbours and queues stay. Where there is no delay the packet passes straight into
// the receiving port, which costs no measurable throughput.
//
// An impairment is a stage: one eBPF program that decides for each packet and counts what it
// saw and hit. Its random numbers are a function of the seed and the packet's ordinal, so that
// one seed always hits the same ordinals. Delay with jitter is netem's.
package cable
