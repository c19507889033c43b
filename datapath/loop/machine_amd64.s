#include "textflag.h"

// func Prefetch(t *Timer)
TEXT ·Prefetch(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	RET

// func goroutine() uintptr
TEXT ·goroutine(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET
