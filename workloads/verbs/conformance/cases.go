package conformance

import "strings"

// Cases lists every case, in an order in which simple things come first.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{
		transferCases(), flagCases(), orderCases(), atomicCases(), datagramCases(), unreliableCases(),
		stateCases(), localErrorCases(), remoteErrorCases(), retryCases(), flushCases(),
		srqCases(), windowCases(), eventCases(), resourceCases(),
	} {
		all = append(all, part...)
	}
	for i := range all {
		all[i].Network = strings.HasPrefix(all[i].Name, "UD ") || strings.HasSuffix(all[i].Name, "at every path MTU")
	}
	return all
}
