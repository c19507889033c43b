// Package compare puts runs side by side: what each came to, what differs by more than chance, and why it
// may. It is given records, reads them and writes nothing; testbed/report shows what it finds.
//
// Why backends differ is a catalogue in code (Differences), from which docs/backends.md has its table: what a
// reader is told under a comparison and what the documentation says are one text.
package compare

//go:generate go run ./gendoc ../../docs/backends.md
