// Package hostfault makes what a host's program and its process suffer: faults that no NIC, link or switch has in itself, on any backend whose
// hosts let it.
//
// Faults come in as fabric.Injector has them, on the run's control loop, where all that an Injector keeps lives. What it does it does on the loops of
// hosts and through narrow hooks of the engine that drives the workloads (Hook): the engine knows nothing of faults. The package touches no
// operating system.
package hostfault
