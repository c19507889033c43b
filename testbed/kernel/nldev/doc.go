// Package nldev speaks to the kernel's RDMA subsystem over netlink (NETLINK_RDMA, client NLDEV):
// adding and deleting rxe devices, their counters, who talks to whom, and how devices relate to
// network namespaces. It is what the rdma tool does, without the tool.
package nldev
