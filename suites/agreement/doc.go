// Package agreement holds the backends against one another: the same scenes (incast, a late flow, parking lot, victim) with PFC, ECN
// and DCQCN, both and neither, on rdma_rxe in the kernel's fabric, on software nodes in real time, and in virtual time,
// which is the yardstick. What is told of each is measured after a warm-up: goodput, fairness, queue, CNPs, pauses, retransmissions.
//
// `make agreement` measures the whole table and writes it into docs/agreement.md; the suite runs a short form of a part of it.
package agreement
