#!/usr/bin/env bash
# Runs every fuzz target of the tree for the time given, one after another.
# Minimising is bounded: by default one interesting input may take a minute of it, in which nothing is tried.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:?usage: fuzz.sh TIME}
found=0
while IFS=: read -r file target; do
  found=$((found + 1))
  echo "fuzz: ./$(dirname "$file") $target for $time"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x "./$(dirname "$file")"
done < <(grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's#^\./([^:]+):[0-9]+:func #\1:#')
echo "fuzz: $found targets"
[ "$found" -gt 0 ]
