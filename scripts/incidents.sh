#!/usr/bin/env bash
# Makes the incidents that ship happen on the backends given (sim,soft), cures them, and writes what came out into docs/incidents.md. Best on a machine that does
# nothing else: a figure that a busy machine spoilt has a tilde. Where a symptom wasn't seen or a cure didn't work nothing is written.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bin/rocebed incident table --markdown --backend "${1:-sim,soft}" --out "$dir/records" >"$dir/table" || { cat "$dir/table"; exit 1; }
go run ./testbed/compare/gendoc docs/incidents.md figures <"$dir/table"
