#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `latchkey mock` in the place of redis-server: under that name in the search path it serves the live
# tests, as far as their options say where to listen. LATCHKEY_PROGRAM names the program.
set -u
port=0 path='' password='' host=127.0.0.1
while [ $# -gt 0 ]; do
  case $1 in
  --port) port=$2 && shift ;;
  --unixsocket) path=$2 && shift ;;
  --requirepass) password=:$2@ && shift ;;
  esac
  shift
done
set --
[ -z "$path" ] || set -- --url "unix://$path"
[ "$port" = 0 ] || set -- "$@" --url "redis://$password$host:$port"
exec "$LATCHKEY_PROGRAM" mock "$@"
