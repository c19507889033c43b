#!/usr/bin/env bash
# Runs the quickstart on each backend and writes what came out, side by side, into docs/backends.md. Best on a machine that does nothing
# else: a run that the machine did not keep up with fails, and then nothing is written.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for backend in sim soft kernel; do
  bin/rocebed run --backend "$backend" --out "$dir/$backend" scenarios/quickstart.yaml
done
bin/rocebed compare --markdown "$dir"/{sim,soft,kernel} >"$dir/table"
go run ./testbed/compare/gendoc docs/backends.md quickstart <"$dir/table"
