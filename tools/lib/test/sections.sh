# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The sections of tools/test, one function each; sections.tsv says what they are for.

if [ -n "$LK_FULL" ]; then torture_s=600; else torture_s=10; fi

section_build() {
  check 'gcc, release' tools/lib/build.sh ci "$LK_BUILD"
}

shell_files() { grep -rlE '^#!/(bin/sh|usr/bin/env bash)|shellcheck shell=' tools c .ci; }
section_lint() {
  check 'latchkey lint' "$LK_BUILD/latchkey" lint
  have luacheck 'luacheck' && check 'luacheck' luacheck -q scripts spec tools
  have clang-format 'clang-format' &&
    find c -name '*.[ch]' -print0 | check 'clang-format' xargs -0 clang-format --dry-run -Werror
  have shellcheck 'shellcheck' && shell_files | check 'shellcheck' xargs shellcheck -x
}

# A server that keeps nothing, in a folder of its own, while the command runs; the command finds it
# by LATCHKEY_SPEC_URL.
with_server() {
  local folder server code=0
  folder=$(mktemp -d)
  "$(command -v redis-server || command -v valkey-server)" --port 0 \
    --unixsocket "$folder/server.sock" --dir "$folder" --save '' --appendonly no >&2 &
  server=$!
  until [ -S "$folder/server.sock" ] || ! kill -0 "$server"; do sleep 0.01; done
  LATCHKEY_SPEC_URL=unix://$folder/server.sock "$@" || code=$?
  kill "$server"
  wait "$server"
  rm -rf "$folder"
  return "$code"
}

# specs BUILD LUA: the specs of the scripts under an interpreter, with the library of a build.
busted_with() {
  local interpreter=$1
  shift
  "$interpreter" "$(command -v busted)" --lua="$(command -v "$interpreter")" -o TAP "$@"
}

section_specs() { have busted 'specs' && tap 'specs' busted_with luajit; }
section_specs_puc() {
  have busted 'specs' && have lua5.1 'specs' && tap 'specs' busted_with lua5.1
}
