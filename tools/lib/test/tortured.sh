#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tortured.sh BUILD SECONDS KIND: the torture of a kind of lock, or `crowd`, as one test of TAP.
set -u
build=$1 seconds=$2 kind=$3
if [ "$kind" = crowd ]; then
  set -- "$build/tests/crowd" "$seconds"
else
  set -- "$build/tests/torture" --kind "$kind" --seconds "$seconds"
fi
echo 1..1
code=0
"$@" 1>&2 || code=$?
if [ "$code" = 0 ]; then
  echo "ok - torture, $kind, $seconds s"
else
  echo "not ok - torture, $kind, $seconds s (exit code $code)"
fi
exit "$code"
