package verbs

// PhantomDevice is a Device that can give memory without bytes, for fabrics whose real bytes would fill a machine.
type PhantomDevice interface {
	Device
	// Phantom says whether the device was made to give such memory.
	Phantom() bool
	// AllocPhantom is AllocMemory for memory that only knows what its bytes would be. It can be registered and used in
	// SGEs as other memory is, but not for atomics and inline data.
	AllocPhantom(size int, kind MemoryKind) (PhantomMemory, error)
}

// PhantomMemory is memory that has no bytes (Bytes is nil) but knows of each which byte of which stream it would be.
// SENDs, WRITEs and READs move that knowledge as they would the bytes, so what is lost, comes twice or goes to the wrong
// place shows as it would in bytes. Stream 0 is zeros, of which all offsets are alike; others are names that the user
// chooses. Ranges must lie in the memory.
type PhantomMemory interface {
	Memory
	// Stamp makes n bytes from at on those of a stream from off on.
	Stamp(at, n int, stream, off uint64)
	// Differs is the index of the first of n bytes from at on that isn't the stream's from off on, or -1.
	Differs(at, n int, stream, off uint64) int
	// At is what the byte at an index is, and how many from there on continue it.
	At(at int) (stream, off uint64, n int)
	// Add is a reduction: n bytes from at on become the sums, element by element, of what they are and what another's
	// from its from on are. The sums of two streams at one offset are the stream whose name is the sum of theirs, modulo 2^64; of two
	// different offsets nothing that anybody expects.
	Add(at, n int, other PhantomMemory, from int)
}
