// Package analysis reads what a record holds and measures or checks it: captures are taken
// apart packet by packet, counters are compared with what was seen on the wire. It reads
// records and writes nothing.
package analysis
