# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# tools/test --matrix: what needs a server, against every server there is: the live tests alone, behind Sentinel and as
# a cluster, specs, functions, the mock beside it, and faults. The servers are that of the search path and those that
# tools/servers gets; or, in their place, the programs that LATCHKEY_SERVERS names, with colons between. What fits no
# topology says so itself and counts as skipped.

matrix_table=$LK_TEST_DIR/matrix.md

# The test of a topology's own stands beside those of all.
files_of() {
  local file
  for file in c/tests/live/test_*.c; do
    case $1:$file in
    *:*/test_sentinel.c | *:*/test_cluster.c) [[ $file == */test_$1.c ]] && echo "$file" ;;
    *) echo "$file" ;;
    esac
  done
}
live_in() {
  local files
  mapfile -t files < <(files_of "$1")
  LATCHKEY_TEST_TOPOLOGY=$1 c_tests live "$LK_BUILD" "${files[@]}"
}

# cell COLUMN COMMAND...: these tests of the server $name as TAP, and what stands in the table for them.
cell() {
  local part=$LK_TEST_DIR/part column=$1
  shift
  "$@" | sed "s/^\(not ok\|ok\)\( [0-9]*\) *- /\1\2 - $name, $column: /" | tee "$part" || exit 74
  awk '
    /^not ok / { bad++ } /^ok .*# SKIP/ { none++; next } /^ok / { good++ }
    END {
      printf " %d passed%s%s |", good, bad ? ", **" bad " failed**" : "", none ? ", " none " skipped" : ""
    }' "$part" >>"$LK_TEST_DIR/row"
}

version_of() { "$1" --version | sed 's/ server v=\([^ ]*\).*/ \1/'; }

# row PROGRAM FOLDER: all tests of one server, as TAP; the folder has what they keep, and the table's row.
row() {
  local -x LK_TEST_DIR=$2
  local bin=$LK_TEST_DIR/bin name topology
  mkdir -p "$bin"
  printf '#!/bin/sh\nexec %s "$@"\n' "$(quoted "$1")" >"$bin/redis-server"
  chmod +x "$bin/redis-server"
  name=$(version_of "$1")
  printf '| %s |' "$name" >"$LK_TEST_DIR/row"
  local -x PATH=$bin:$PATH
  for topology in standalone sentinel cluster; do cell "$topology" live_in "$topology"; done
  cell specs section_specs_live
  cell functions section_specs_functions
  cell fidelity section_fidelity
  cell faults section_faults
  echo >>"$LK_TEST_DIR/row"
}

# rows PROGRAM...: two servers at a time, each with a folder of its own for what its tests keep. What they said is
# told in order.
rows() {
  local home=$LK_TEST_DIR/matrix n=0 program at
  rm -rf "$home"
  for program; do
    n=$((n + 1)) at=$home/$n
    mkdir -p "$at"
    [ "$n" -le 2 ] || wait -n
    { row "$program" "$at" >"$at/tap" 2>"$at/log" && : >"$at/whole"; } &
  done
  wait
  for ((at = 1; at <= n; at++)); do
    cat "$home/$at/tap"
    [ -e "$home/$at/whole" ] || echo "not ok - ${!at} broke off"
    cat "$home/$at/log" >&2
    cat "$home/$at/row" >>"$matrix_table"
  done
}

# not_run NAME WHY: skipped, with a row that says so.
not_run() {
  skip "$1" "$2"
  printf '| %s | not run: %s | - | - | - | - | - | - |\n' "$1" "$2" >>"$matrix_table"
}

# others SEEN: $programs are those of tools/servers whose versions are none of these, or of one before.
others() {
  local server name version seen=$1 code=0
  local -a servers
  # shellcheck disable=SC2154 # `setup` is of tools/test
  if [ "$setup" = yes ]; then tools/servers; else tools/servers --kept; fi >"$LK_TEST_DIR/servers" || code=$?
  mapfile -t servers <"$LK_TEST_DIR/servers"
  # It is 1 where some could not be had, each of which it lists.
  if [ "$code" -gt 1 ] || [ ${#servers[@]} -eq 0 ]; then not_run 'other servers' "tools/servers ended with $code"; fi
  for server in "${servers[@]}"; do
    IFS=$'\t' read -r name server version <<<"$server"
    if [ "$server" = - ]; then
      not_run "$name" "$version"
    elif ! grep -qxF "$version" <<<"$seen"; then
      programs+=("$server")
      seen+=$'\n'$version
    fi
  done
}

section_matrix() {
  local server own at
  local -a servers programs
  has_c_tests "$LK_BUILD" 'matrix' || return
  printf '| server | %s |\n|---|%s\n' 'standalone | Sentinel | Cluster | specs | functions | fidelity | faults' \
    '---|---|---|---|---|---|---|' >"$matrix_table"
  own=$(command -v redis-server || command -v valkey-server)
  programs=("$own")
  if [ -n "${LATCHKEY_SERVERS+named}" ]; then
    IFS=: read -ra servers <<<"$LATCHKEY_SERVERS"
    for server in "${servers[@]}"; do
      at=$(from_here "$server")
      if [ -f "$at" ] && [ -x "$at" ]; then
        programs+=("$at")
      else
        say "not ok - $server of LATCHKEY_SERVERS is no program"
      fi
    done
    rows "${programs[@]}"
    return
  fi
  others "$(version_of "$own")"
  rows "${programs[@]}"
}
