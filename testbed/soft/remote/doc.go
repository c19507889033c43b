// Package remote is a host's RDMA devices in a process of their own, as seen from another: verbs over a socket pair, with the
// memory shared by both.
//
// The Server stands in the process that has the devices, on their loop. The Client is a provider of verbs in the
// process that uses them, on a loop of that one's. Calls that complete by callback go over as they are; posting, polling and
// allocating memory ask and wait, so that errors, keys and what a poll finds are exactly what the device says. A process
// that has been stopped answers nobody: then posting counts as done, and polling finds nothing, until it goes on. When it has
// ended, everything fails.
package remote
