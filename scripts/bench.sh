#!/usr/bin/env bash
# bench.sh [BENCH PACKAGE…]: with no arguments the figures that docs/speed.md is about, as data packets a second; else the benchmarks that
# BENCH matches in the packages, as go test prints them.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
  bench=$1
  shift
  # shellcheck disable=SC2086
  exec go test ${TAGS:+-tags "$TAGS"} -run '^$' -bench "$bench" -benchmem "$@"
fi
{
  go test -run '^$' -bench '^BenchmarkReal$/^hosts=/^workers=[12]$' ./datapath/bench
  if [ "$(uname -s)" = Linux ] && [ "$(id -u)" = 0 ]; then
    go test -run '^$' -bench '^BenchmarkWrite$' -benchtime 1x ./testbed/soft
  else
    echo "software nodes need root here: no figure of them" >&2
  fi
} | awk '
  { print > "/dev/stderr" }
  /^(FAIL|---|panic)/ { bad = 1 }
  /^Benchmark/ {
    for (k in m) delete m[k]
    for (i = 3; i < NF; i += 2) m[$(i + 1)] = $i
    if (match($1, /hosts=[0-9]+/)) {
      hosts = substr($1, RSTART + 6, RLENGTH - 6); cores = $1 ~ /workers=2/ ? "two cores" : "one core"
      line[++n] = sprintf("virtual time, %4d hosts, %-9s  %10d data packets/s   %.2f of the bare fabric, %.1f events a packet, %d MiB", hosts, cores, m["packets/s"], m["of-bare"], m["events/packet"], m["MiB"])
    } else if ($1 ~ /^BenchmarkWrite/)
      line[++n] = sprintf("software nodes, one pair through a switch  %5d data packets/s   %.2f Gb/s verified, %.2f of a bare AF_PACKET pipe", m["Gb/s"] * 1e9 / 8 / 4096, m["Gb/s"], m["of-pipe"])
  }
  END { print ""; for (i = 1; i <= n; i++) print line[i]; exit bad || n == 0 }'
