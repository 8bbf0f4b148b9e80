#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD [--record]: what operations cost the client and the server, in counts that do not depend
# on how busy the machine is. Speaks TAP. Each figure is the difference of two runs that differ by many
# operations, so that everything else cancels out.
#
# A busy machine adds to them where threads meet or calls are sent together, now and then: what fails is
# counted again, twice at most. What really costs more does so each time.
#
# recorded.tsv holds what each operation cost when that was last looked at: more instructions than 5 %
# above it fail (15 % where two threads share the work; 30 % of a hand-over, where the threads wake each
# other once for each message or for several, as the machine has it: 18,300 to 21,400 of the same build were
# seen), and so does any other number of commands.
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
declare -A tolerance=([pairs]=5 [reenter]=5 [handover]=30 [pass]=15 [renew]=15)
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
# listen is asked by the clock, not by the operation. The counters are reset before the line is written, as the
# reader waits for nothing behind it.
commands() {
  local counted
  counted=$(redis-cli -s "$work/redis.sock" info commandstats)
  redis-cli -s "$work/redis.sock" config resetstat >/dev/null
  tr -d '\r' <<<"$counted" |
    awk -F '[_:=,]' '/^cmdstat_/ && !/^cmdstat_(info|config|command|pubsub)/ { all += $4 }
      /^cmdstat_(evalsha|fcall):/ { scripts += $4 } END { print all + 0, scripts + 0 }'
}

number=0
ok() { number=$((number + 1)) && echo "ok $number - $1"; }
not_ok() { number=$((number + 1)) && echo "not ok $number - $1"; }
# check COMMAND...: it sets `title`, and fails when the figure is not what it should be.
check() {
  local _
  for _ in 1 2 3; do
    if "$@"; then
      ok "$title"
      return
    fi
  done
  not_ok "$title"
}
# A figure of half the limit or less was not counted right.
fits() { [ "$2" -le "$1" ] && [ $(($2 * 2)) -gt "$1" ]; }

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

# compares OPERATION
compares() {
  local -a was
  measure "$1"
  title="$1: $cost instructions, $((all / 100)).$(printf %02d $((all % 100))) commands"
  read -r -a was < <(of "$1") || true
  if [ ${#was[@]} -eq 0 ]; then
    title="$title # SKIP nothing is recorded for $compiler, $kind"
    return
  fi
  title="$title; recorded ${was[0]} and $((was[1] / 100)).$(printf %02d $((was[1] % 100)))"
  [ $((100 * cost)) -le $(((100 + tolerance[$1]) * was[0])) ] && [ "$all" -eq "${was[1]}" ] &&
    [ "$scripts" -eq "${was[2]}" ]
}

# of_pairs TITLE CALL...: these system calls, at most 2 each.
of_pairs() {
  local made=$(($(calls $many pairs "${@:2}") - $(calls $few pairs "${@:2}")))
  title="$made $1 for $more pairs, at most 2 each"
  fits $((2 * more + noise)) "$made"
}

renews_together() {
  local together=$(($(calls $many renew sendto) - $(calls $few renew sendto)))
  title="$together writes for $more renewals, at most $((more / 20))"
  [ "$together" -gt 0 ] && [ "$together" -le $((more / 20)) ]
}

# Of the pairs as they were compared: pairs_cost and pairs_all are theirs.
is_near_hiredis() {
  local plain=$((($(instructions theirs $many -) - $(instructions theirs $few -)) / more))
  local percent=$((100 * pairs_cost / plain))
  title="$pairs_cost instructions a pair, $percent % of plain hiredis' $plain, at most $limit %"
  fits $limit $percent
}

# A client that answers questions does what another does, as long as nobody asks.
answers_for_nothing() {
  measure answering
  title="answers: $cost instructions and $((all / 100)) commands a pair, without $pairs_cost and $((pairs_all / 100))"
  [ "$all" -eq "$pairs_all" ] && fits 101 $((100 * cost / pairs_cost))
}

# idle MODE: sets bytes (in use of the heap) and threads (in hundredths) of one idle client. With one arena: of
# others, what their threads keep for themselves counts as in use.
idle() {
  local -a few_of many_of
  read -r -a few_of < <(MALLOC_ARENA_MAX=1 ours 100 "$1")
  read -r -a many_of < <(MALLOC_ARENA_MAX=1 ours 300 "$1")
  bytes=$(((many_of[0] - few_of[0]) / 200))
  threads=$(((many_of[1] - few_of[1]) / 2))
}
idles_alike() {
  local plain_bytes plain_threads
  idle idle
  plain_bytes=$bytes plain_threads=$threads
  idle idle-answering
  title="answers: $bytes bytes of heap an idle client, without $plain_bytes, at most 5 % more; no more threads"
  [ "$plain_bytes" -gt 10000 ] && [ $((100 * bytes)) -le $((105 * plain_bytes)) ] &&
    [ "$threads" -eq "$plain_threads" ]
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

echo '1..11'
check of_pairs writes write sendto writev
check of_pairs reads read recvfrom readv
check renews_together
for operation in $operations; do
  check compares "$operation"
  if [ "$operation" = pairs ]; then
    pairs_cost=$cost pairs_all=$all
    check is_near_hiredis
    check answers_for_nothing
  fi
done
check idles_alike
