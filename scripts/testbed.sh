#!/usr/bin/env bash
# testbed.sh [all|sim|soft|kernel]: runs scenarios/quickstart.yaml and says what came out. All: first what needs nothing but Go (in
# virtual time, then on software nodes over real veths), then it sets up what the real rxe needs, runs it there (in a guest where this
# kernel can't), and puts the three side by side. The quick part is built before it is called (make setup-soft).
# Exit code: 0 all passed, 1 one failed, 3 one can't run here.
set -euo pipefail
cd "$(dirname "$0")/.."
scenario=scenarios/quickstart.yaml
backends=${1:-all}
[ "$backends" != all ] || backends="sim soft kernel"
out=out/testbed-$(date +%Y%m%d-%H%M%S)
records=()
worst=0

note() { [ "$1" -le "$worst" ] || worst=$1; }

for backend in $backends; do
  if [ "$backend" = kernel ] && ! "${MAKE:-make}" --no-print-directory setup; then
    note 3
    echo "testbed: what the kernel backend needs is not all here: no run on it (see above)" >&2
    continue
  fi
  code=0 record=$out/$backend
  bin/rocebed run --backend "$backend" --out "$record" "$scenario" || code=$?
  if [ "$code" = 1 ] && grep -q 'the machine did not keep up' "$record/summary.json"; then
    printf '\ntestbed: other programs keep this machine busy: once more, four times slower (--dilation 4096)\n'
    code=0 record=$record-slower
    bin/rocebed run --backend "$backend" --dilation 4096 --out "$record" "$scenario" || code=$?
  fi
  note "$code"
  [ ! -e "$record/summary.json" ] || records+=("$record")
done

if [ ${#records[@]} -gt 1 ]; then
  printf '\nSide by side (again: bin/rocebed compare %s)\n' "${records[*]}"
  code=0
  bin/rocebed compare "${records[@]}" || code=$?
  note "$code"
fi
exit "$worst"
