#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command where pseudo terminals can be opened: a bare root has none until they are mounted,
# which only root can do.
set -u
if [ -e /dev/pts/ptmx ] || [ ! -d /dev/pts ] || [ "$(id -u)" -ne 0 ] ||
  ! mount -t devpts devpts /dev/pts; then
  exec "$@"
fi
trap 'umount /dev/pts' EXIT
trap 'exit 130' HUP INT TERM
"$@"
