// Package nl speaks netlink for the kernel backend: it builds messages by hand, sends many in one
// system call, and reads replies and dumps. It knows nothing of what the messages mean; tc and
// nldev do.
//
// Messages are plain bytes, so that what is sent can be compared with recorded golden messages
// without root.
package nl
