// Package strict reads YAML the way a scenario deserves: an unknown key, a key given twice,
// a wrong type or a bad unit is an error with file, line and column, and a suggestion where
// one is near. All problems of a file are reported at once, in the order they stand in it.
//
// Bytes go in, a struct comes out, and a Document that knows where each key stood, so that
// callers can report what only they can judge (a link to a missing node) at its place.
//
// The package touches no files and never panics, whatever the bytes. It is stricter than
// YAML: one document, no tags, no merge keys, no empty values; anchors and aliases work.
package strict
