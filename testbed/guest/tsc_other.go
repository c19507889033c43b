//go:build !amd64

package guest

func readTSC() uint64 { return 0 }

const hasTSC = false
