//go:build linux

// Package bpf has the programs that are written in C. On cables: which packets an event is about and what is done to them (pick.c), and what is
// copied, delayed and held (settle.c). At ports: the engine (port.c, and an included file for each of its ideas). Their objects are committed, so nobody needs a C compiler but who changes them: `make generate`
// builds them anew.
//
// cable loads the first two, as stages of its chain, and replaces the maps rb_cables and rb_stages by the chain's own; engine loads the third.
package bpf

//go:generate go tool bpf2go -go-package bpf -target bpfel -tags linux -no-global-types -cc clang-19 -strip llvm-strip-19 -cflags "-O2 -mcpu=v3 -Wall -Wno-parentheses" Pick pick.c
//go:generate go tool bpf2go -go-package bpf -target bpfel -tags linux -no-global-types -cc clang-19 -strip llvm-strip-19 -cflags "-O2 -mcpu=v3 -Wall -Wno-parentheses" Settle settle.c
//go:generate go tool bpf2go -go-package bpf -target bpfel -tags linux -no-global-types -cc clang-19 -strip llvm-strip-19 -cflags "-O2 -mcpu=v3 -Wall" Port port.c
