package guest

// readTSC reads the processor's time stamp counter.
func readTSC() uint64

const hasTSC = true
