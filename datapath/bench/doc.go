// Package bench measures how fast the emulated silicon runs in virtual time: data packets a second
// of wall time on fat trees, of the real RNIC and switch, and of bare forwarders as their bound.
// It has tests and benchmarks alone; `make bench PKG=./datapath/bench`.
package bench
