#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds these sources in two folders, the second more than a year later, in another time zone and language. What
# is handed on must be the same bytes. (Both on one file system: cpack counts the size of folders, too.) Speaks TAP.
#   reproducible.sh [PLANT]    PLANT is a line for c/src/base/status.c of both, to see the check fail
set -u
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
one=$work/one another="$work/another folder/ü"
unset SOURCE_DATE_EPOCH
export CCACHE_DISABLE=1

# As they are, committed or not, and nothing that was built of them.
copy() {
  mkdir -p "$1" &&
    (cd "$root" && git ls-files -z -co --exclude-standard) |
    tar -C "$root" -c --null --ignore-failed-read -T - 2>/dev/null | tar -C "$1" -x
}
has_site_tools() { command -v mkdocs && command -v dot; } >/dev/null
# build FOLDER: packages, bundle and site, in FOLDER/build/packages.
build() {
  cd "$1" || return
  cmake --preset packages -DLK_DEPS_DIR="$root/build/deps" && cmake --build --preset packages -j 2 &&
    (cd build/packages && cpack) || return
  build/packages/latchkey bundle -o build/packages/packages/bundle.tar.gz || return
  if has_site_tools; then tools/site --build build/packages || return; fi
}
first() { (TZ=UTC0 LC_ALL=C build "$one"); }
second() {
  export -f build has_site_tools
  TZ=Asia/Kathmandu LC_ALL=C.UTF-8 root=$root faketime -f +400d bash -c "build '$another'"
}
both_copies() { copy "$one" && copy "$another"; }

same() { cmp "$one/build/packages/$1" "$another/build/packages/$1"; }
same_folder() { diff -rq "$one/build/packages/$1" "$another/build/packages/$1"; }
number=0
check() {
  number=$((number + 1))
  title=$1
  shift
  if ("$@") >&2; then echo "ok $number - $title"; else echo "not ok $number - $title"; fi
}

check 'two copies' both_copies
if [ $# -gt 0 ]; then printf '%s\n' "$1" | tee -a "$one/c/src/base/status.c" >>"$another/c/src/base/status.c"; fi
check 'a build' first
check 'a build elsewhere and later' second
for file in liblatchkey.so liblatchkey.a latchkey packages/bundle.tar.gz; do
  check "the same bytes: $file" same "$file"
done
for deb in "$one"/build/packages/packages/*.deb; do
  check "the same bytes: ${deb##*/}" same "packages/${deb##*/}"
done
check 'the same bytes: manual and completions' same_folder manual
check 'the same bytes: lists of what is linked' same_folder sbom
if [ -d "$one/build/packages/site/html" ]; then
  check 'the same bytes: site' same_folder site/html
elif has_site_tools; then
  check 'the same bytes: site' false
else
  number=$((number + 1))
  echo "ok $number - the same bytes: site # SKIP MkDocs or Graphviz is not installed"
fi
echo "1..$number"
