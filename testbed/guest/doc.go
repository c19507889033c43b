// Package guest boots microVMs whose kernel has what this machine's lacks, and runs
// programs inside them.
//
// In: a Config (memory, processors, files to ship, the binary to run as init). Out: a
// Guest, in which programs run with their input, output, terminal, signals and exit
// code carried, and between which and the machine files travel.
//
// A guest is QEMU with the image of package images: the cached base archive and, behind
// it, one made for this boot with the rocebed binary (the guest's init), the files
// shipped, and keys made for this boot alone. Machine and guest talk SSH over a
// virtio-serial port that is an inherited socket pair: no network is opened, no file is
// left behind, nothing can be connected to from outside.
//
// A guest never outlives the process that booted it: the kernel kills QEMU when its
// keeper dies, and the guest powers off when its port goes away. A guest that dies,
// panics or stops answering ends every call on it with a Failure that holds the last
// lines of its console.
//
// The same package is both ends: Boot on the machine, Init in the guest.
package guest
