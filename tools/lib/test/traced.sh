#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# traced.sh BUILD SECONDS: a torture run of all kinds of locks whose clients write down what they do,
# and `latchkey check --trace` for each of the files. At least 1000 lines a second have to come of it.
set -u
build=$1 seconds=$2
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT

"$build/tests/torture" --kind lock,mutex,fenced,fair,rw --locks 20 --processes 4 --threads 12 \
  --seconds "$seconds" --trace "$folder" || {
  trap - EXIT
  echo "the traces are in $folder"
  exit 1
}

lines=$(cat -- "$folder"/*.jsonl | wc -l)
if [ "$lines" -lt $((seconds * 1000)) ]; then
  echo "only $lines lines were written"
  exit 1
fi
for file in "$folder"/*.jsonl; do
  # A process that was killed may have left half a line behind.
  [ -n "$(tail -c 1 -- "$file")" ] && sed -i '$d' -- "$file"
  [ -s "$file" ] || continue
  if ! "$build/latchkey" check --trace "$file"; then
    cp -- "$file" "${LK_TEST_DIR:-/tmp}/"
    echo "kept as ${LK_TEST_DIR:-/tmp}/${file##*/}"
    exit 1
  fi
done
echo "$lines lines in all"
