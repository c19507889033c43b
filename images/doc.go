// Package images builds the guest image: the kernel and the base userland that a
// microVM boots when the machine's own kernel lacks what a rocebed fabric needs.
//
// In: the machine itself. The kernel is the machine's own where that is new enough and
// has rdma_rxe, else the newest one that Debian's trixie-backports offers, fetched by
// signed apt in an isolated root. The userland is the machine's own programs with the
// libraries they load. Out: a folder in a cache with the kernel, one uncompressed newc
// archive and a manifest that records every version and SHA-256.
//
// An image is built once and used until one of its inputs changes. It appears whole or
// not at all: it is written aside, synced and renamed under a lock, so that neither two
// builds at once, a full disk nor a kill -9 leaves half an image that is later trusted.
//
// This package must never write a mirror's host name anywhere but into its cache, and
// never install anything on the machine.
package images
