#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command beside a server that keeps nothing, in a folder of its own; the command finds it by
# LATCHKEY_SPEC_URL. LK_SERVER_PORT: a TCP port for those who know no Unix sockets. LK_SERVER_QUERY:
# what stands behind the URL, `?functions=1`. LK_SERVER_CLUSTER: the server is a whole cluster, and the
# variable becomes its URL.
set -u
missing() {
  echo "with_server: neither redis-$1 nor valkey-$1 is installed" >&2
  exit 69
}
program=$(command -v redis-server || command -v valkey-server) || missing server
if [ -n "${LK_SERVER_CLUSTER-}" ]; then
  cli=$(command -v redis-cli || command -v valkey-cli) || missing cli
fi
folder=$(mktemp -d)
server=''
# shellcheck disable=SC2317 # called by the trap
leave() {
  if [ -n "$server" ]; then
    kill "$server"
    wait "$server"
  fi
  rm -rf "$folder"
}
trap leave EXIT
trap 'exit 130' HUP INT TERM

"$program" --port "${LK_SERVER_PORT:-0}" --bind 127.0.0.1 --unixsocket "$folder/server.sock" \
  --dir "$folder" --save '' --appendonly no \
  ${LK_SERVER_CLUSTER:+--cluster-enabled yes --cluster-port $((LK_SERVER_PORT + 1))} >"$folder/log" 2>&1 &
server=$!
# until_it COMMAND...: as long as the server lives.
until_it() {
  until "$@"; do
    if ! kill -0 "$server" 2>/dev/null; then
      cat "$folder/log" >&2
      exit 1
    fi
    sleep 0.01
  done
}
# shellcheck disable=SC2317 # called by until_it
is_whole() { "$cli" -s "$folder/server.sock" cluster info | grep -q cluster_state:ok; }

until_it [ -S "$folder/server.sock" ]
if [ -n "${LK_SERVER_CLUSTER-}" ]; then
  "$cli" -s "$folder/server.sock" cluster addslotsrange 0 16383 >>"$folder/log"
  until_it is_whole
  export LK_SERVER_CLUSTER="redis-cluster://127.0.0.1:$LK_SERVER_PORT"
fi
LATCHKEY_SPEC_URL=unix://$folder/server.sock${LK_SERVER_QUERY-} "$@"
