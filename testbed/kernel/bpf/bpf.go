//go:build linux

// Package bpf has the programs on cables that are written in C: which packets an event is about and what is done to them (pick.c), and what is
// copied, delayed and held (settle.c). Their objects are committed, so nobody needs a C compiler but who changes them: `make generate`
// builds them anew.
//
// cable loads them, as stages of its chain, and replaces the maps rb_cables and rb_stages by the chain's own.
package bpf

//go:generate go tool bpf2go -go-package bpf -target bpfel -tags linux -no-global-types -cc clang-19 -strip llvm-strip-19 -cflags "-O2 -mcpu=v3 -Wall -Wno-parentheses" Pick pick.c
//go:generate go tool bpf2go -go-package bpf -target bpfel -tags linux -no-global-types -cc clang-19 -strip llvm-strip-19 -cflags "-O2 -mcpu=v3 -Wall -Wno-parentheses" Settle settle.c
//go:generate go tool bpf2go -go-package bpf -target bpfel -tags linux -no-global-types -cc clang-19 -strip llvm-strip-19 -cflags "-O2 -mcpu=v3 -Wall" Port port.c
