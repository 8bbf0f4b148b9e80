# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The order of sections. First come those that want the machine for themselves, one by one; then three
# lanes run side by side, of sections that compute, of sections that mostly wait for servers and clocks,
# and of the sanitizers, which do both in turn. A lane that is through takes what is left of the others, so
# that none runs on alone: long sections stand first in the table. What each said is told as soon as it is over.

# stand_back NAME: of what runs side by side, what computes stands back for what has deadlines.
stand_back() {
  [ -z "$(of_lane computes "$1")" ] || renice -n 10 -p "$BASHPID" >/dev/null
}

# run_section NAME: leaves its tests in NAME.tap, the rest in NAME.log, the seconds of a processor that it
# took in NAME.cpu, and NAME.seconds once it is over. Without that file, something could not be written.
run_section() {
  local tap=$LK_TEST_DIR/$1.tap start=$SECONDS
  export LK_SECTION=$1
  : >"$LK_TEST_DIR/$1.parts" || return
  (stand_back "$1" || : && "section_${1//-/_}" || : && times >"$LK_TEST_DIR/$1.cpu") \
    >"$tap" 2>"$LK_TEST_DIR/$1.log" </dev/null 8>&- ||
    echo "not ok - $1 broke off" >>"$tap" || return
  grep -q '^\(not \)\?ok ' "$tap" || echo "not ok - $1 ran nothing" >>"$tap" || return
  echo $((SECONDS - start)) >"$LK_TEST_DIR/$1.seconds"
}
# Those seconds stand there whole, or nothing does.
is_over() { [ -s "$LK_TEST_DIR/$1.seconds" ]; }

# run_alone NAME: in a process group of its own, as lanes are, so that it can be ended while it is waited for.
run_alone() {
  set -m
  run_section "$1" &
  set +m
  wait $! || :
}

# of_lane LANE NAME...: those of them that the table puts there, in its order.
# shellcheck disable=SC2154 # the table is that of tools/test
of_lane() {
  local lane=$1
  shift
  awk -F '\t' -v lane="$lane" -v chosen=" $* " '
    NR > 1 && $3 == lane && index(chosen, " " $1 " ") { print $1 }' "$table"
}

lanes_of_all=(computes sanitizes waits)

# Those that no other lane has begun.
run_lane() {
  local name
  for name; do
    if mkdir "$LK_TEST_DIR/begun/$name" 2>/dev/null; then run_section "$name"; fi
  done
}

# Each lane has a process group of its own, so that what it starts does not ignore SIGINT.
start_lanes() {
  local lane names
  rm -rf "$LK_TEST_DIR/begun" && mkdir -p "$LK_TEST_DIR/begun"
  set -m
  for lane in "${lanes_of_all[@]}"; do
    mapfile -t names < <(of_lane "$lane" "$@")
    run_lane "${names[@]}" "$@" &
  done
  set +m
}

# The lanes that still run: of another the number may be somebody else's by now.
lanes() { jobs -pr; }

# run_lanes TELL NAME...: calls TELL for each section that is over, or that nobody is left to run.
run_lanes() {
  local tell=$1 name live=yes
  shift
  local -A due=()
  for name; do due[$name]=; done
  start_lanes "$@"
  while [ ${#due[@]} -gt 0 ]; do
    [ -n "$(lanes)" ] || live=''
    for name; do
      [ -n "${due[$name]+due}" ] || continue
      if [ -z "$live" ] || is_over "$name"; then
        "$tell" "$name"
        unset "due[$name]"
      fi
    done
    sleep 0.2
  done
}

# A process and all that it started, each stopped first, so that no number is given to another meanwhile.
end_tree() {
  local child
  local -a children=()
  kill -STOP "$1" || return
  read -ra children <"/proc/$1/task/$1/children"
  for child in "${children[@]}"; do end_tree "$child"; done
  kill "$1"
  kill -CONT "$1"
}
# shellcheck disable=SC2317 # called by the trap of tools/test
end_lanes() {
  local lane
  for lane in $(lanes); do end_tree "$lane"; done 2>/dev/null
}
