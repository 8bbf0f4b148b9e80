# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of tools/platforms
# Bare systems for tools/platforms: how they are made, and how commands run in them. Each is kept as it was
# made; what runs, runs in a copy.

# shellcheck source=tools/lib/mirror.sh
. tools/lib/mirror.sh

# make_base SUITE: a system with git alone, and the updates of its suite.
make_base() {
  local suite=$1 base=$home/base-$1
  [ -e "$base/.complete" ] && return
  rm -rf --one-file-system "$base"
  debootstrap --variant=minbase --include=git,ca-certificates "$suite" "$base" "$(debian_mirror '')" || return
  rm -f "$base/etc/apt/sources.list"
  {
    printf 'deb %s %s main\n' "$(debian_mirror '')" "$suite" "$(debian_mirror '')" "$suite-updates"
    if [ -n "$(debian_mirror -security)" ]; then printf 'deb %s %s-security main\n' "$(debian_mirror -security)" "$suite"; fi
  } >"$base/etc/apt/sources.list.d/debian.list"
  # shellcheck disable=SC2016 # apt's own placeholder
  echo 'Binary::apt::APT::Keep-Downloaded-Packages "true"; APT::Keep-Downloaded-Packages "true";' \
    >"$base/etc/apt/apt.conf.d/keep"
  printf '#!/bin/sh\nexit 101\n' >"$base/usr/sbin/policy-rc.d"
  chmod 755 "$base/usr/sbin/policy-rc.d"
  ln -sf pts/ptmx "$base/dev/ptmx"
  touch "$base/.complete"
}

# copy_base SUITE ROOT: where it lies, what a run before left is gone.
copy_base() {
  make_base "$1" || return
  rm -rf --one-file-system "$2"
  mkdir -p "$2" "$home/archives-$1/partial"
  cp -a "$home/base-$1/." "$2"
  cp /etc/resolv.conf /etc/hosts "$2/etc/"
}

# run_in ROOT SUITE USER FOLDER COMMAND...: with mounts and processes of its own, which end with it, and nothing
# of the environment. With $offline it has no network but the loopback.
run_in() {
  # shellcheck disable=SC2016 # expanded by the inner shell
  unshare --mount --pid --fork --kill-child ${offline:+--net} sh -euc '
    root=$1 archives=$2 user=$3 folder=$4
    shift 4
    if [ -n "${offline-}" ]; then ip link set lo up; fi
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || :
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
    mkdir -p "$root/dev/shm"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mount --bind "$archives" "$root/var/cache/apt/archives"
    id=0 where=/root
    if [ "$user" != root ]; then id=1000 where=/home/$user; fi
    exec chroot --userspec="$id:$id" --groups="$id" "$root" /usr/bin/env -i \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$where" USER="$user" LOGNAME="$user" \
      SHELL=/bin/bash TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
      sh -c "cd \"\$1\" && shift && exec \"\$@\"" sh "$folder" "$@"' \
    sh "$1" "$home/archives-$2" "$3" "$4" "${@:5}" </dev/null
}
