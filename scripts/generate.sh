#!/usr/bin/env bash
# Makes anew what is made from other sources and committed: the eBPF objects, by clang, and the tables in docs/faults.md. Where that differs
# from what is committed it fails, with the new files in place: look at them, and commit both.
set -euo pipefail
cd "$(dirname "$0")/.."
made=(testbed/kernel/bpf docs/faults.md)
with=testbed/kernel/bpf/clang.version

if ! command -v clang-19 >/dev/null || ! command -v llvm-strip-19 >/dev/null; then
  command -v apt-get >/dev/null || { echo "generate: install clang 19 and its llvm first, as clang-19 and llvm-strip-19" >&2; exit 3; }
  [ "$(id -u)" = 0 ] || { echo "generate: clang-19 and llvm-strip-19 are missing, and installing them needs root" >&2; exit 3; }
  apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 update || true
  apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install --no-install-recommends clang-19 llvm-19 >/dev/null
fi
clang=$(clang-19 --version | grep -oE 'version [0-9]+' | head -1)
committed=$(cat "$with" 2>/dev/null || echo none)
[ -z "$(git status --porcelain -- "${made[@]}")" ] || sources=" (there are changes that are not committed)"

go generate ./testbed/kernel/bpf ./faults
echo "$clang" > "$with"
if [ -n "$(git status --porcelain -- "${made[@]}")" ]; then
  echo "generate: what is made differs from what is committed${sources:-}:" >&2
  git status --short -- "${made[@]}" >&2
  [ "$clang" = "$committed" ] || echo "generate: this is clang $clang, the committed objects are from clang $committed: other code from the same source is to be expected" >&2
  exit 1
fi
echo "generate: all as committed (clang $clang)"
