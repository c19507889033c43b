// Package record is the run record: the folder that a run leaves and that reports, analysis,
// suites and live views read.
//
//	manifest.json        versions, host, wall times, paths: what differs between two equal runs
//	data/                what the scenario and the seed determine, in fabric time
//	  scenario.yaml      the scenario as it was read
//	  run.json           backend, seed and named dilation
//	  topology.json      the topology, and plan.json its addresses and routes
//	  events.jsonl       what happened, one JSON object a line, in order of time once the run is over
//	  metrics.jsonl      readings before, during and after; a line during the run holds what changed
//	  workloads.json     results per workload and flow
//	  faults.json        faults with their hits
//	  verdicts.json      expectations and the values they saw
//	  captures/*.pcapng  packets, where a capture was asked for
//	  traces/*.txt       how a NIC's first messages went through its stages, where nics.trace asks for it
//	summary.json         the result as one object: what reports are made of, and what a comparison reads
//	report.html, junit.xml
//
// The hash in the manifest is the SHA-256 of one line per file of data/, sorted by path:
//
//	cd data && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum | sha256sum
//
// Files are written whole and renamed into place, or appended a line at a time; the manifest
// says "complete" only once everything else is on the disk. So a record that a crash cut
// short is known for what it is, and what it holds can still be read.
package record
