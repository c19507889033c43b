#!/usr/bin/env bash
# suites.sh BACKEND [PACKAGE-PATTERN…]: runs the tests that need a real rxe, and the suites.
# Where this kernel can't do rxe, their binaries are shipped into a guest and run there.
# On software nodes (soft, and sim in virtual time) the suites run right here, those that are about more than one backend; suites/soak
# is about virtual time alone.
# TEST_FLAGS goes to every binary (-test.run=… -ginkgo.focus=…). Nothing may skip for want of rxe or root: ROCEBED_TESTS_MUST_RUN turns such a skip into a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
backend=${1:?usage: suites.sh kernel|auto|soft|sim [PACKAGES]}
shift
case $backend in
  kernel | auto) ;;
  soft | sim)
    if [ $# = 0 ]; then
      set -- $(grep -rl --include='*_test.go' 'bed\.Suite(' suites | xargs -n1 dirname | sort -u | sed 's#^#./#')
      [ "$backend" = soft ] || set -- "$@" ./suites/soak
    fi
    # shellcheck disable=SC2086
    ROCEBED_BACKEND=$backend ROCEBED_TESTS_MUST_RUN=1 exec go test -count=1 $([ "$backend" = sim ] || echo -p 1) "$@" -args ${TEST_FLAGS:-} ;;
  *) echo "suites: there is no backend '$backend'; known: kernel, auto, soft, sim" >&2; exit 2 ;;
esac

# Packages with a test that says it needs rxe, and every suite.
packages() {
  { grep -rlE --include='*_test.go' 'testneed\.Rxe\(' cmd faults testbed workloads 2>/dev/null || true
    find suites -name '*_test.go' ! -path 'suites/soak/*' 2>/dev/null || true
  } | xargs -r -n1 dirname | sort -u
}
list=("$@")
[ ${#list[@]} -gt 0 ] || mapfile -t list < <(packages)
[ ${#list[@]} -gt 0 ] || { echo "suites: no package needs rxe" >&2; exit 1; }

ship=$PWD/bin/guest/tests
rm -rf bin/guest
mkdir -p "$ship"
for p in "${list[@]}"; do
  mkdir -p "$ship/$p"
  go test -c -tags ibv -ldflags='-s -w' -o "$ship/$p/" "./$p"
  # Where all that needs rxe lies in files of its own, the rest has run outside already, some ten times as fast.
  if compgen -G "$p/*_rxe_linux_test.go" >/dev/null && ! grep -lE 'testneed\.Rxe\(' "$p"/*_test.go | grep -qv '_rxe_linux_test\.go$'; then
    grep -hoE '^func Test[A-Za-z0-9_]+' "$p"/*_rxe_linux_test.go | awk '{print $2}' | paste -sd '|' | sed 's/.*/^(&)$/' > "$ship/$p/only"
  fi
  [ ! -d "$p/testdata" ] || cp -r "$p/testdata" "$ship/$p/"
done
cp -r docs README.md scenarios "$ship/"
cp scripts/run-tests.sh "$ship/"
printf '%s\n' "${TEST_FLAGS:-}" > "$ship/flags"

if [ "$(printf '7.1\n%s\n' "$(uname -r)" | sort -V | head -1)" = 7.1 ] && modprobe -q rdma_rxe; then
  exec "$ship/run-tests.sh" "$PWD/bin/rocebed"
fi
# Two processors whatever this machine has, so that results compare; memory for the larger fabrics.
exec bin/rocebed shell --guest --mem "${ROCEBED_GUEST_MB:-2048}" --ship "$ship" -- /x/tests/run-tests.sh /usr/bin/rocebed
