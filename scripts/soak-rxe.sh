#!/usr/bin/env bash
# soak-rxe.sh ROCEBED MINUTES: an incast on real rxe for so many minutes of wall time, with pauses, DCQCN and links that flap, on a kernel that can.
# It fails where the run does, where the kernel warned of anything, and where memory grew. Part of soak.sh, which runs it in a guest.
set -euo pipefail
rocebed=${1:?usage: soak-rxe.sh ROCEBED MINUTES} minutes=${2:?usage: soak-rxe.sh ROCEBED MINUTES}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
dilation=2048
fabric_us=$((minutes * 60 * 1000000 / dilation))
cat > "$dir/soak.yaml" <<YAML
apiVersion: rocebed/v1
name: soak
dilation: $dilation
topology: {spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}, rate: 10Gbps}
nics: {dcqcn: paper}
switches: {pfc: {xoff: 100KB, xon: 20KB}, ecn: {kmin: 40KB, kmax: 200KB, pmax: 10%}}
workloads:
  - {name: in, kind: write, from: [h1, h2, h3], to: [h4], size: 64KiB, duration: ${fabric_us}us}
faults:
  - {name: loose, kind: flap, at: ["leaf1-spine1"], period: 60ms, down: 200us, may_miss: true}
expect:
  - 'workloads["in"].errors == 0'
YAML
# What is left, without what the record takes of it: its folder may be in memory.
left() { echo $(($(awk '/^MemAvailable/{print $2}' /proc/meminfo) + $(du -sk "$dir" | cut -f1))); }
warned() { dmesg | grep -ciE 'WARNING:|BUG:|Oops|Call Trace|refcount_t|hung task|soft lockup' || true; }
before=$(warned)
"$rocebed" run --backend kernel --allow-slow --out "$dir/record" "$dir/soak.yaml" &
run=$!
samples=()
while kill -0 $run 2>/dev/null; do
  sleep 10
  samples+=("$(left)")
done
code=0
wait $run || code=$?
n=${#samples[@]}
if [ "$n" -ge 9 ]; then
  third=$((n / 3))
  mean() { local sum=0; for v in "$@"; do sum=$((sum + v)); done; echo $((sum / $#)); }
  early=$(mean "${samples[@]:third:third}") late=$(mean "${samples[@]:2*third:third}")
  echo "memory left: $early KiB in the second third, $late KiB in the last ($n samples)"
  if [ $((early - late)) -gt $((early / 50)) ]; then
    echo "soak: memory grew by more than a fiftieth of what was left" >&2
    code=1
  fi
fi
if [ "$(warned)" != "$before" ]; then
  echo "soak: the kernel has warned:" >&2
  dmesg | grep -iE -A12 'WARNING:|BUG:|Oops|Call Trace|refcount_t|hung task|soft lockup' >&2
  code=1
fi
exit $code
