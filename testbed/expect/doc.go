// Package expect is what a scenario's expectations are written in: CEL over the results of
// workloads, the hits of faults and the metric registry.
//
//	workloads["all-pairs"].errors == 0
//	workloads["ring"].goodput_bps > rate("1Gbps")
//	workloads["read"].latency.p99 < duration("20us")
//	faults["lossy"].hits > 0 && faults["lossy"].healed
//	delta("out_of_seq_request") == 0
//	max("qdisc_backlog_bytes", {"node": "leaf*", "slot": "shape"}) < bytesize("1MB")
//
// Expressions are checked when a scenario is loaded, names of workloads, faults, metrics,
// labels and nodes included: what a run would only find out at its end is an error at its
// place before anything is created. The package touches no operating system.
package expect
