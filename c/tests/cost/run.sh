#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD: what one uncontended acquire and release from one thread costs the client. Speaks TAP.
# Counts, not times: two runs that differ by 1,000 pairs, so that everything else cancels out.
set -euo pipefail

build=$1
root=$(cd "$(dirname "$0")/../../.." && pwd)
few=200 many=1200 pairs=1000
noise=20 # what opening and the background thread may add
limit=150 # instructions, in percent of plain hiredis

work=$(mktemp -d)
trap 'redis-cli -s "$work/redis.sock" shutdown nosave 2>/dev/null || true; rm -rf "$work"' EXIT
redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work" --daemonize yes \
  --logfile "$work/redis.log" >/dev/null
for _ in $(seq 100); do
  redis-cli -s "$work/redis.sock" ping >/dev/null 2>&1 && break
  sleep 0.05
done

sha1() { sha1sum "$root/scripts/lock/$1.lua" | cut -c1-40; }
ours() { "${@:2}" "$build/tests/latchkey_pairs" "unix://$work/redis.sock" "$1"; }
theirs() {
  "${@:2}" "$build/tests/hiredis_pairs" "$work/redis.sock" "$1" "$(sha1 acquire)" "$(sha1 release)"
}

# instructions PROGRAM COUNT
instructions() {
  "$1" "$2" valgrind --tool=callgrind --callgrind-out-file=/dev/null 2>"$work/callgrind" ||
    { cat "$work/callgrind" >&2 && return 1; }
  awk '/Collected/ { print $4 }' "$work/callgrind"
}

# calls COUNT NAME...: how often the program makes one of these system calls.
calls() {
  local count=$1 names
  shift
  names=$(IFS=, && echo "$*")
  ours "$count" strace -f -qq -e "trace=$names" -e signal=none -o "$work/strace"
  grep -cE "^[0-9]+ +($(IFS='|' && echo "$*"))\(" "$work/strace" || true
}

number=0
# verdict TITLE LIMIT FIGURE: a figure of half the limit or less was not counted right.
verdict() {
  number=$((number + 1))
  if [ "$3" -le "$2" ] && [ $(($3 * 2)) -gt "$2" ]; then echo "ok $number - $1"; else echo "not ok $number - $1"; fi
}

echo '1..3'
writes=$(($(calls $many write sendto sendmsg writev) - $(calls $few write sendto sendmsg writev)))
verdict "$writes writes for $pairs pairs, at most 2 each" $((2 * pairs + noise)) "$writes"
reads=$(($(calls $many read recvfrom recvmsg readv) - $(calls $few read recvfrom recvmsg readv)))
verdict "$reads reads for $pairs pairs, at most 2 each" $((2 * pairs + noise)) "$reads"

mine=$((($(instructions ours $many) - $(instructions ours $few)) / pairs))
plain=$((($(instructions theirs $many) - $(instructions theirs $few)) / pairs))
percent=$((100 * mine / plain))
verdict "$mine instructions a pair, $percent % of plain hiredis' $plain, at most $limit %" \
  $limit $percent
