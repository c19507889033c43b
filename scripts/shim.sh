#!/usr/bin/env bash
# Builds the library that raises programs' QP timeouts, which go build then puts into the binary. Where there is
# no C compiler or no header of libibverbs, rocebed is built without it and says so when it is wanted.
set -euo pipefail
cd "$(dirname "$0")/../testbed/kernel/shim"
[ qp.so -nt qp.c ] && exit 0
cc=${CC:-cc}
if ! command -v "$cc" >/dev/null || ! echo '#include <infiniband/verbs.h>' | "$cc" -E - >/dev/null 2>&1; then
  rm -f qp.so
  echo "no C compiler or no libibverbs headers (Debian: gcc, libibverbs-dev): programs under exec get no raised QP timeouts" >&2
  exit 0
fi
"$cc" -shared -fPIC -O2 -Wall -Wextra -Werror -o qp.so.new qp.c
mv qp.so.new qp.so
