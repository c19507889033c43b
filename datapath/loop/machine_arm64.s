#include "textflag.h"

// func Prefetch(t *Timer)
TEXT ·Prefetch(SB), NOSPLIT, $0-8
	MOVD t+0(FP), R0
	PRFM (R0), PLDL1KEEP
	PRFM 64(R0), PLDL1KEEP
	RET

// func goroutine() uintptr
TEXT ·goroutine(SB), NOSPLIT, $0-8
	MOVD g, ret+0(FP)
	RET
