#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD [--record]: what operations cost the client and the server, in counts that do not depend
# on how busy the machine is. Speaks TAP. Each figure is the difference of two runs that differ by many
# operations, so that everything else cancels out.
#
# recorded.tsv holds what each operation cost when that was last looked at: more instructions than 5 %
# above it fail (15 % where two threads share the work), and so does any other number of commands.
# --record writes the rows of this compiler and kind of build.
set -euo pipefail

build=$1
record=${2-}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
recorded=$here/recorded.tsv
few=500 many=2500 more=2000
noise=20         # system calls that opening and the background thread may add
limit=130        # instructions of a pair, in percent of plain hiredis
# percent above the record
declare -A tolerance=([pairs]=5 [reenter]=5 [handover]=15 [pass]=15 [renew]=15)
operations='pairs reenter handover pass renew'

work=$(mktemp -d)
trap 'redis-cli -s "$work/redis.sock" shutdown nosave 2>/dev/null || true; rm -rf "$work"' EXIT
redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work" --daemonize yes \
  --logfile "$work/redis.log" >/dev/null
for _ in $(seq 100); do
  redis-cli -s "$work/redis.sock" ping >/dev/null 2>&1 && break
  sleep 0.05
done

sha1() { sha1sum "$root/scripts/lock/$1.lua" | cut -c1-40; }
ours() { "${@:3}" "$build/tests/latchkey_pairs" "unix://$work/redis.sock" "$1" "$2"; }
theirs() {
  "${@:3}" "$build/tests/hiredis_pairs" "$work/redis.sock" "$1" "$(sha1 acquire)" "$(sha1 release)"
}

# instructions PROGRAM COUNT OPERATION; leaves how many operations it were in $work/done.
instructions() {
  "$1" "$2" "$3" valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    >"$work/done" 2>"$work/callgrind" || { cat "$work/callgrind" >&2 && return 1; }
  awk '/Collected/ { print $4 }' "$work/callgrind"
}

# calls COUNT OPERATION NAME...: how often the program makes one of these system calls.
calls() {
  local count=$1 operation=$2 names
  shift 2
  names=$(IFS=, && echo "$*")
  ours "$count" "$operation" strace -f -qq -e "trace=$names" -e signal=none -o "$work/strace" >/dev/null
  grep -cE "^[0-9]+ +($(IFS='|' && echo "$*"))\(" "$work/strace" || true
}

# Commands that the server ran since the last look, those inside of scripts included, and scripts. How many
# listen is asked by the clock, not by the operation.
commands() {
  redis-cli -s "$work/redis.sock" info commandstats | tr -d '\r' |
    awk -F '[_:=,]' '/^cmdstat_/ && !/^cmdstat_(info|config|command|pubsub)/ { all += $4 }
      /^cmdstat_(evalsha|fcall):/ { scripts += $4 } END { print all + 0, scripts + 0 }'
  redis-cli -s "$work/redis.sock" config resetstat >/dev/null
}

number=0
ok() { number=$((number + 1)) && echo "ok $number - $1"; }
not_ok() { number=$((number + 1)) && echo "not ok $number - $1"; }
# verdict TITLE LIMIT FIGURE: a figure of half the limit or less was not counted right.
verdict() { if [ "$3" -le "$2" ] && [ $(($3 * 2)) -gt "$2" ]; then ok "$1"; else not_ok "$1"; fi; }

# measure OPERATION: sets cost (instructions), all and scripts (commands, in hundredths), of one each.
measure() {
  local before after begun ended
  local -a first second
  commands >/dev/null
  before=$(instructions ours $few "$1") begun=$(cat "$work/done")
  read -r -a first < <(commands)
  after=$(instructions ours $many "$1") ended=$(cat "$work/done")
  read -r -a second < <(commands)
  cost=$(((after - before) / (ended - begun)))
  all=$(((100 * (second[0] - first[0]) + (ended - begun) / 2) / (ended - begun)))
  scripts=$(((100 * (second[1] - first[1]) + (ended - begun) / 2) / (ended - begun)))
}

compiler="$(sed -n 's/^CMAKE_C_COMPILER:[^=]*=.*\///p' "$build/CMakeCache.txt") $(cc -dumpversion)"
kind=$(sed -n 's/^CMAKE_BUILD_TYPE:[^=]*=//p' "$build/CMakeCache.txt")
# of OPERATION: instructions, commands, scripts as recorded for this compiler and kind of build.
of() { awk -F '\t' -v c="$compiler $kind" -v o="$1" '$1 == c && $2 == o { print $3, $4, $5 }' "$recorded"; }

# compare OPERATION
compare() {
  local -a was
  local title
  title="$1: $cost instructions, $((all / 100)).$(printf %02d $((all % 100))) commands"
  read -r -a was < <(of "$1") || true
  if [ ${#was[@]} -eq 0 ]; then
    ok "$title # SKIP nothing is recorded for $compiler, $kind"
    return
  fi
  title="$title; recorded ${was[0]} and $((was[1] / 100)).$(printf %02d $((was[1] % 100)))"
  if [ $((100 * cost)) -le $(((100 + tolerance[$1]) * was[0])) ] && [ "$all" -eq "${was[1]}" ] &&
    [ "$scripts" -eq "${was[2]}" ]; then ok "$title"; else not_ok "$title"; fi
}

if [ "$record" = --record ]; then
  grep -v "^$compiler $kind	" "$recorded" >"$work/recorded" || true
  for operation in $operations; do
    measure "$operation"
    printf '%s\t%s\t%s\t%s\t%s\n' "$compiler $kind" "$operation" "$cost" "$all" "$scripts" \
      >>"$work/recorded"
  done
  cp "$work/recorded" "$recorded" && cat "$recorded"
  exit
fi

echo '1..9'
writes=$(($(calls $many pairs write sendto writev) - $(calls $few pairs write sendto writev)))
verdict "$writes writes for $more pairs, at most 2 each" $((2 * more + noise)) "$writes"
reads=$(($(calls $many pairs read recvfrom readv) - $(calls $few pairs read recvfrom readv)))
verdict "$reads reads for $more pairs, at most 2 each" $((2 * more + noise)) "$reads"
together=$(($(calls $many renew sendto) - $(calls $few renew sendto)))
title="$together writes for $more renewals, at most $((more / 20))"
if [ "$together" -le $((more / 20)) ]; then ok "$title"; else not_ok "$title"; fi

plain=$((($(instructions theirs $many -) - $(instructions theirs $few -)) / more))
for operation in $operations; do
  measure "$operation"
  if [ "$operation" = pairs ]; then
    percent=$((100 * cost / plain))
    verdict "$cost instructions a pair, $percent % of plain hiredis' $plain, at most $limit %" \
      $limit $percent
  fi
  compare "$operation"
done
