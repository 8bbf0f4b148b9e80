# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# tools/test --matrix: the live tests against every server there is, alone, behind Sentinel and as a
# cluster. The servers are that of the search path, and the programs that LATCHKEY_SERVERS names, with
# colons between. What fits no topology says so itself and counts as skipped.

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

# cell FILE: what stands in the table for these tests.
cell() {
  awk '
    /^not ok / { bad++ } /^ok .*# SKIP/ { none++; next } /^ok / { good++ }
    END {
      printf " %d passed%s%s |", good, bad ? ", **" bad " failed**" : "", none ? ", " none " skipped" : ""
    }' "$1"
}

# row PROGRAM: all tests of one server, as TAP; its row goes into the table.
row() {
  local bin=$LK_TEST_DIR/matrix-bin part=$LK_TEST_DIR/matrix.part name topology files
  mkdir -p "$bin"
  printf '#!/bin/sh\nexec %q "$@"\n' "$1" >"$bin/redis-server"
  chmod +x "$bin/redis-server"
  name=$("$bin/redis-server" --version | sed 's/ server v=\([^ ]*\).*/ \1/')
  printf '| %s |' "$name" >>"$matrix_table"
  for topology in standalone sentinel cluster; do
    mapfile -t files < <(files_of "$topology")
    PATH=$bin:$PATH LATCHKEY_TEST_TOPOLOGY=$topology c_tests live "$LK_BUILD" "${files[@]}" |
      sed "s/^\(not ok\|ok\)\( [0-9]*\) - /\1\2 - $name, $topology: /" | tee "$part"
    cell "$part" >>"$matrix_table"
  done
  PATH=$bin:$PATH live_specs "$LK_BUILD" | tee "$part"
  cell "$part" >>"$matrix_table"
  echo >>"$matrix_table"
}

section_matrix() {
  local server servers
  has_c_tests "$LK_BUILD" 'matrix' || return
  printf '| server | standalone | Sentinel | Cluster | specs |\n|---|---|---|---|---|\n' >"$matrix_table"
  IFS=: read -ra servers <<<"${LATCHKEY_SERVERS-}"
  for server in "$(command -v redis-server || command -v valkey-server)" "${servers[@]}"; do
    row "$server"
  done
}
