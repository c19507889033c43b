#!/usr/bin/env bash
# What `make test` runs. Each stage runs whatever became of those before it; when all passed,
# the output ends in the last runner's own closing lines.
set -euo pipefail
cd "$(dirname "$0")/.."

begun=$SECONDS
failed=() why=
trap 'exit 130' INT # go test ends well when it is interrupted: without this the next stage would begin
said=$(mktemp)
trap 'rm -f "$said"' EXIT
stage() { # NAME COMMAND...
  printf '\n== %s (at %d s)\n' "$1" $((SECONDS - begun))
  # tee outlives an interrupt: what is being ended still has something to say.
  "${@:2}" 2>&1 | tee -i "$said" || {
    failed+=("$1")
    why+=$(printf '\n\n-- %s\n' "$1"; sed 's/\x1b\[[0-9;]*m//g' "$said" | grep -aE -A8 '^ *(--- FAIL|panic:|WARNING: DATA RACE|FAIL |\[(FAILED|TIMEDOUT|PANICKED|INTERRUPTED)\])' | cut -c1-300 | head -n 60)
  }
}

units() {
  # shellcheck disable=SC2046
  ROCEBED_GUEST_TESTS=1 go test -tags ibv -race -timeout 20m $(go list -tags ibv ./... | grep -v '/suites/')
}

stage "units and what needs root on this machine, with the race detector" units
stage "the suites in virtual time, and random scenarios" scripts/suites.sh sim
stage "the suites on software nodes" scripts/suites.sh soft
stage "what needs rxe, and the suites on it" scripts/suites.sh kernel

if [ ${#failed[@]} -gt 0 ]; then
  printf '\nWhat failed, once more:%s\n' "$why"
  printf '\nFAIL: %s' "${failed[@]}"
  echo
  exit 1
fi
