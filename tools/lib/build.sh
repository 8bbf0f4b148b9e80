#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures with a preset and builds everything, or the targets; what that says goes to a log, shown
# when it fails.
#   build.sh PRESET FOLDER [TARGET...]
set -eu
preset=$1 folder=$2
shift 2
mkdir -p build/logs "$folder"
# One at a time in a folder.
exec 9<"$folder"
flock 9
log=build/logs/build-$preset.log
printf 'building %s in %s ... ' "$preset" "$folder"
if ! { cmake --preset "$preset" -B "$folder" && cmake --build "$folder" ${1+--target "$@"}; } >"$log" 2>&1; then
  printf 'failed\n'
  tail -n 40 "$log" >&2
  exit 1
fi
printf 'done\n'
