// Package crosstraffic makes the faults that are traffic beside the workloads: RDMA WRITEs that no congestion notification slows
// down, bursts that meet at one NIC, UDP streams that slow down for nobody, TCP streams.
//
// A fault comes in as a faults.Spec and goes out as packets of the fabric's own hosts. RDMA runs on the hosts' verbs devices,
// through an engine of package workloads that is no part of the run: its results aren't the run's, and its payload isn't checked.
// UDP and TCP are sockets in the hosts' namespaces where there are any; in virtual time UDP leaves through the NIC's port, and
// there is no TCP. Hits are counted by what sends: completed messages times their packets, datagrams that a socket or a port took,
// and what TCP says of its segments.
//
// It touches nothing but what it made: healing closes its sockets and destroys its queue pairs, and no others.
package crosstraffic
