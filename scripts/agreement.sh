#!/usr/bin/env bash
# agreement.sh [--json] [--dilation N] [--scenes TEXT] [--modes LIST] [--merge] [--short]: runs the agreement's scenes in virtual time, on software nodes and on
# rxe (in a guest where this kernel can't), and writes the table into docs/agreement.md, or prints it as JSON. A part of the scenes, or
# of their time, is printed alone; with --merge it takes its rows' place in the page. Best on a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
json=0 part=0 merge=0 code=0 dilation=512 which=()
while [ $# -gt 0 ]; do
  case $1 in
    --json) json=1; shift ;;
    --dilation) dilation=$2; shift 2 ;;
    --scenes | --modes) which+=("-${1#--}" "$2"); part=1; shift 2 ;;
    --merge) merge=1; shift ;;
    --short) which+=(-short); part=1; shift ;;
    *) echo "usage: agreement.sh [--json] [--dilation N] [--scenes TEXT] [--modes LIST] [--merge] [--short]" >&2; exit 2 ;;
  esac
done

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -tags ibv -trimpath -ldflags '-s -w' -o "$dir/measure" ./suites/agreement/measure
for backend in sim soft kernel; do
  run=("$dir/measure")
  if [ "$backend" = kernel ] && ! { [ "$(printf '7.1\n%s\n' "$(uname -r)" | sort -V | head -1)" = 7.1 ] && modprobe -q rdma_rxe; }; then
    run=(bin/rocebed shell --guest --mem "${ROCEBED_GUEST_MB:-2048}" --ship "$dir/measure" -- /x/measure)
  fi
  echo "agreement: $backend" >&2
  "${run[@]}" -backend "$backend" -dilation "$dilation" "${which[@]}" </dev/null >>"$dir/figures" || code=1
done
if [ "$json" = 1 ]; then
  go run ./suites/agreement/gendoc -json <"$dir/figures" || code=1
elif [ "$merge" = 1 ]; then
  go run ./suites/agreement/gendoc -merge docs/agreement.md <"$dir/figures" || code=1
elif [ "$part" = 1 ]; then
  go run ./suites/agreement/gendoc -text <"$dir/figures" || code=1
else
  go run ./suites/agreement/gendoc docs/agreement.md <"$dir/figures" || code=1
fi
exit "$code"
