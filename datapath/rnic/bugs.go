package rnic

// Bugs are faults that tests plant to see that they are found.
type Bugs uint64
