#!/usr/bin/env bash
# run-tests.sh ROCEBED: runs every test binary below its own folder, each in its package's
# folder, one after another; goes on after a failure and says at the end which failed. When none
# did, the last lines are the last binary's own. Part of
# suites.sh, on this machine or in a guest.
set -euo pipefail
cd "$(dirname "$0")"
export ROCEBED=${1:?usage: run-tests.sh ROCEBED} ROCEBED_TESTS_MUST_RUN=1 HOME=${HOME:-/root}
export PATH=$PATH:/usr/sbin:/sbin
failed=()
trap 'exit 130' INT # a test binary that cleans up ends as if it had failed: no other begins
read -ra flags < flags
while read -r binary; do
  package=$(dirname "$binary")
  printf '\n-- %s (at %d s)\n' "$package" "$SECONDS"
  code=0
  only=()
  [ ! -e "$package/only" ] || only=("-test.run=$(< "$package/only")")
  (cd "$package" && "./$(basename "$binary")" -test.timeout=20m "${only[@]}" "${flags[@]}" </dev/null) || code=$?
  [ "$code" = 0 ] || failed+=("$package (exit code $code)")
done < <(find . -name '*.test' -type f | sed 's#^\./##' | sort | awk '/^suites/{s = s $0 "\n"; next} {print} END {printf "%s", s}')
if [ ${#failed[@]} -gt 0 ]; then
  printf '\nFAIL %s' "${failed[@]}"
  echo
  exit 1
fi
