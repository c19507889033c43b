// Package report makes what people look at from a run's summary and record: tables for a
// terminal, a self-contained HTML page, JUnit XML. It reads and formats; it judges nothing.
package report
