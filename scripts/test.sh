#!/usr/bin/env bash
# What `make test` runs. Each stage runs whatever became of those before it; when all passed,
# the output ends in the last runner's own closing lines.
set -euo pipefail
cd "$(dirname "$0")/.."

begun=$SECONDS
failed=()
trap 'exit 130' INT # go test ends well when it is interrupted: without this the next stage would begin
stage() { # NAME COMMAND...
  printf '\n== %s (at %d s)\n' "$1" $((SECONDS - begun))
  "${@:2}" || failed+=("$1")
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
  printf '\nFAIL: %s' "${failed[@]}"
  echo
  exit 1
fi
