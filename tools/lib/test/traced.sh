#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# traced.sh BUILD STEPS: torture runs of all kinds of locks whose clients write down what they do, and
# `latchkey check --trace` for each of the files, until at least so many steps are seen to be allowed.
set -u
build=$1 least=$2 steps=0
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT

# What is left of a process that was killed may end with half a line.
whole() {
  [ -n "$(tail -c 1 -- "$1")" ] && sed -i '$d' -- "$1"
  [ -s "$1" ]
}

for run in {1..12}; do
  rm -f -- "$folder"/*.jsonl
  "$build/tests/torture" --kind lock,mutex,fenced,fair,rw --locks 20 --processes 4 --threads 12 \
    --seconds 10 --trace "$folder" || {
    trap - EXIT
    echo "the traces are in $folder"
    exit 1
  }
  for file in "$folder"/*.jsonl; do
    whole "$file" || continue
    if ! said=$("$build/latchkey" check --trace "$file"); then
      cp -- "$file" "${LK_TEST_DIR:-/tmp}/"
      printf '%s\nkept as %s\n' "$said" "${LK_TEST_DIR:-/tmp}/${file##*/}"
      exit 1
    fi
    echo "$said"
    steps=$((steps + ${said%% *}))
  done
  echo "$steps steps after $run runs"
  [ "$steps" -lt "$least" ] || exit 0
done
echo "only $steps steps"
exit 1
