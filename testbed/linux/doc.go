// Package linux brings a topology's nodes and links to life as network namespaces and veth
// pairs, owns them on behalf of a named testbed, and takes them away again: in order when the
// testbed closes, from the journal when its keeper died. It is the only room that enters a
// namespace; everyone else calls [Namespace.Do].
//
// Data comes in as a topo.Plan (addresses, routes) and goes out as a [Wiring]: a namespace a
// node, with its links up, addressed and routed. It knows nothing of RDMA, of qdiscs or of
// scenarios: other rooms make those inside the namespaces and tell the testbed what they made
// ([Testbed.Own]), so that it is taken away before the namespaces are.
//
// Ownership. A testbed is a folder in /run/rocebed, root's alone, with a lock that dies with
// its holder and a journal that is written before anything is made. A namespace is known by its
// inode and its cookie, which the kernel never gives out twice in one boot; what has the right
// name and the wrong identity is not ours and is left alone.
package linux
