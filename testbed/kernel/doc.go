// Package kernel makes rxe-host and linux-switch nodes: the backend whose transport is the
// kernel's rdma_rxe and whose switches are the kernel's forwarding, ECMP and traffic control.
//
// [Build] takes a plan and a testbed and returns a living [fabric.Fabric]: namespaces, links and
// routes from package linux; a tc tree on every port (package tc); a cable with delay and faults
// behind every port (package cable); an rxe device on every host NIC (package nldev), opened
// through libibverbs. Rates are divided and delays multiplied by the dilation here, and nowhere
// else.
//
// One owner declares and reconciles each thing: a port's tree belongs to [ports], a cable to
// cable.Set. Nobody else touches a qdisc.
//
// [Probe] tries what this kernel can do by doing it; doctor prints it. Backends are chosen by
// [Capable], which is quick.
package kernel
