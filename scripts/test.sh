#!/usr/bin/env bash
# What `make test` runs. Ends in the last runner's own closing lines.
set -euo pipefail
cd "$(dirname "$0")/.."

begun=$SECONDS
stage() { printf '\n== %s (at %d s)\n' "$1" $((SECONDS - begun)); }

stage "units and what needs root on this machine, with the race detector"
# shellcheck disable=SC2046
ROCEBED_GUEST_TESTS=1 go test -tags ibv -race -timeout 15m $(go list ./... | grep -v '/suites/')

stage "kernel tests and suites"
scripts/suites.sh kernel
