// Package torture runs two RNICs against each other with random work over a wire that loses,
// doubles, reorders, delays and spoils packets, and checks every byte, every completion and every
// acknowledgement against a model of what verbs allow.
//
// A run follows from its seed alone: which transport and recovery, which operations of which
// sizes, which faults. Do makes one; when it finds a violation, the error names the seed that
// shows it again. The model is sequential: what an RC requester posts happens to its peer's
// memory in order, so that the generator knows, when it writes the script, what each READ and
// each atomic must return and what each receive must hold.
//
// The package drives devices through verbs and link alone. It is for tests.
package torture
