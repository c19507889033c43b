#!/usr/bin/env bash
# Random runs in virtual time, every byte checked: of two software RNICs over a bad wire, then of whole scenarios. It ends after
# SOAK_RUNS (100000; 0: none) runs of the first and a fiftieth of that of the second, or after SOAK_TIME (1h) for each,
# whichever comes first. Then an incast on real rxe, in a guest where this kernel can't, for SOAK_RXE_MINUTES (30; 0: not at all). SOAK_SEED (1) is the first seed: a violation names its own, and SOAK_RUNS=1 SOAK_SEED=N shows it again.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${SOAK_RUNS:-100000} seed=${SOAK_SEED:-1} time=${SOAK_TIME:-1h}
scenarios=$(((runs + 49) / 50))
failed=0
part() { # PACKAGE TEST RUNS
  [ "$3" != 0 ] || return 0
  go test "$1" -run "^$2\$" -count 1 -timeout 0 -v -args -runs "$3" -seed "$seed" -time "$time" || failed=1
}
part ./datapath/rnic/torture TestRandomRunsViolateNothing "$runs"
part ./suites/soak TestRandomScenariosViolateNothing "$scenarios"
minutes=${SOAK_RXE_MINUTES:-30}
if [ "$minutes" != 0 ]; then
  if [ "$(printf '7.1\n%s\n' "$(uname -r)" | sort -V | head -1)" = 7.1 ] && modprobe -q rdma_rxe; then
    scripts/soak-rxe.sh bin/rocebed "$minutes" || failed=1
  else
    bin/rocebed shell --guest --mem 2048 --ship "$PWD/scripts/soak-rxe.sh" -- /x/soak-rxe.sh /usr/bin/rocebed "$minutes" || failed=1
  fi
fi
exit $failed
