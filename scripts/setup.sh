#!/usr/bin/env bash
# Installs what building, running and testing rocebed needs and this machine lacks.
# Does nothing, and needs no root, when nothing is missing. Exit 0 done, 3 can't here.
set -euo pipefail

case $(uname -m) in
  x86_64) qemu=qemu-system-x86_64 qemu_deb=qemu-system-x86 qemu_rpm=qemu-system-x86-core ;;
  aarch64) qemu=qemu-system-aarch64 qemu_deb=qemu-system-arm qemu_rpm=qemu-system-aarch64-core ;;
  *) echo "setup: rocebed is not built for $(uname -m) machines" >&2; exit 3 ;;
esac
PATH=$PATH:/usr/sbin:/sbin:/usr/libexec

# What is looked for (a command, or a file as a path pattern); the package that has it for
# apt, dnf, pacman, zypper. A dash: no package known by that name there.
needs="
gcc                                             gcc                gcc               gcc              gcc
/usr/include/stdlib.h                           libc6-dev          glibc-devel       glibc            glibc-devel
/usr/include/infiniband/verbs.h                 libibverbs-dev     rdma-core-devel   rdma-core        rdma-core-devel
/usr/lib*/libibverbs/librxe-*|/usr/lib/*/libibverbs/librxe-*  ibverbs-providers  libibverbs  rdma-core  libibverbs
/etc/libibverbs.d/*                             ibverbs-providers  rdma-core         rdma-core        rdma-core
ibv_rc_pingpong                                 ibverbs-utils      libibverbs-utils  rdma-core        libibverbs-utils
rping                                           rdmacm-utils       librdmacm-utils   rdma-core        librdmacm-utils
ib_write_bw                                     perftest           perftest          -                perftest
ip                                              iproute2           iproute           iproute2         iproute2
tc                                              iproute2           iproute-tc        iproute2         iproute2
rdma                                            iproute2           iproute           iproute2         iproute2
ethtool                                         ethtool            ethtool           ethtool          ethtool
modprobe                                        kmod               kmod              kmod             kmod
busybox                                         busybox-static     busybox           busybox          busybox-static
xz                                              xz-utils           xz                xz               xz
tcpdump                                         tcpdump            tcpdump           tcpdump          tcpdump
tshark                                          tshark             wireshark-cli     wireshark-cli    wireshark
iperf3                                          iperf3             iperf3            iperf3           iperf
ldd                                             libc-bin           glibc-common      glibc            glibc
/etc/ssl/certs/ca-certificates.crt|/etc/ssl/certs/ca-bundle.crt|/etc/ssl/ca-bundle.pem  ca-certificates ca-certificates ca-certificates ca-certificates
$qemu                                           $qemu_deb          $qemu_rpm         qemu-base        qemu-x86
"

have() { # any alternative of a pattern list
  local alt
  for alt in ${1//|/ }; do
    case $alt in
      /*) compgen -G "$alt" >/dev/null && return 0 ;;
      *) command -v "$alt" >/dev/null && return 0 ;;
    esac
  done
  return 1
}

column=2
for m in apt-get dnf pacman zypper none; do
  command -v "$m" >/dev/null && break
  column=$((column + 1))
done
[ "$m" != none ] || column=2

lacking() { # prints "what package" of everything that is missing
  echo "$needs" | while read -r what packages; do
    [ -n "$what" ] || continue
    have "$what" || echo "$what $(echo "x $packages" | awk -v c="$column" '{print $c}')"
  done
}

missing=$(lacking)
if [ -z "$missing" ]; then
  echo "setup: nothing is missing"
  exit 0
fi
packages=$(echo "$missing" | awk '$2 != "-" {print $2}' | sort -u | tr '\n' ' ')

advise() {
  echo "setup: $1. Missing:" >&2
  echo "$missing" | awk '{sub(/\|.*/, "", $1); print "  " $1 ($2 == "-" ? "  (no package known: build it from source)" : "  (package " $2 ")")}' >&2
  exit 3
}
[ "$m" != none ] || advise "this machine has none of apt, dnf, pacman, zypper (the names below are Debian's)"
[ "$(id -u)" = 0 ] || advise "installing needs root: run 'sudo make setup'"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "setup: installing $packages"
attempt() {
  case $m in
    apt-get)
      export DEBIAN_FRONTEND=noninteractive
      # A third-party source that is down must not stop us: what counts is that install works.
      apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 update || true
      # shellcheck disable=SC2086
      apt-get -qq -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        install --no-install-recommends $packages ;;
    dnf) # shellcheck disable=SC2086
      dnf -y -q install $packages ;;
    pacman) # shellcheck disable=SC2086
      pacman -Sy --noconfirm --needed $packages ;;
    zypper) # shellcheck disable=SC2086
      zypper --non-interactive --quiet install --no-recommends $packages ;;
  esac
}
for try in 1 2 3; do
  if attempt >"$log" 2>&1 </dev/null; then break; fi
  [ "$try" = 3 ] || { echo "setup: the package manager failed, trying again in 5 s"; sleep 5; }
done
missing=$(lacking)
if [ -n "$missing" ]; then
  echo "setup: $m said last:" >&2
  tail -20 "$log" >&2
  advise "$m did not bring everything"
fi
echo "setup: done"
