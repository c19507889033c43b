// Package mixed makes fabrics whose nodes are of different kinds: soft-hosts and soft-switches among rxe-hosts and
// linux-switches, on a kernel that has rdma_rxe. So the software RNIC is held against the kernel's on the wire.
//
//	rxe-host ═ cable ═ linux-switch ═ cable ═ soft-host
//
// The kernel's room lays namespaces and cables, makes its own nodes, and owns what goes wrong on links, captures
// and delays, so that these are the same everywhere; the soft room puts its nodes into their places. Neither
// knows the other: this package stands between them, and is one fabric.Fabric.
package mixed
