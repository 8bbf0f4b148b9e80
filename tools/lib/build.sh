#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configures and builds with a preset; what it says goes to a log, shown when it fails.
#   build.sh PRESET FOLDER [CMAKE OPTION...]
set -eu
preset=$1 folder=$2
shift 2
mkdir -p build/logs
log=build/logs/build-$preset.log
printf 'building %s in %s ... ' "$preset" "$folder"
if ! { cmake --preset "$preset" -B "$folder" "$@" && cmake --build "$folder"; } >"$log" 2>&1; then
  printf 'failed\n'
  tail -n 40 "$log" >&2
  exit 1
fi
printf 'done\n'
