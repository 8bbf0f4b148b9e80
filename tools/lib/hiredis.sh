#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds hiredis from the source archive in the pool of the mirror that apt is configured with, for
# distributions of the Debian family whose package is too old. Its symbols are hidden: it becomes
# part of liblatchkey. The archive is kept in the user's cache: a second clone needs no network.
#   hiredis.sh PREFIX
set -eu
prefix=$1
version=1.2.0
file=hiredis_$version.orig.tar.gz
sha256=82ad632d31ee05da13b537c124f819eb88e18851d9cb0c30ae0552084811588c

mirrors() {
  # shellcheck disable=SC2016 # apt's own placeholders
  apt-get indextargets --format '$(REPO_URI) $(ORIGIN)' | awk '$2 == "Debian" { print $1 }' | sort -u
}
is_whole() { echo "$sha256  $1" | sha256sum --check --status 2>/dev/null; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
archive=$work/$file
kept=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/latchkey/$file
if is_whole "$kept"; then
  archive=$kept
else
  if [ -z "$(mirrors)" ] && [ "$(id -u)" -eq 0 ]; then apt-get update; fi
  for mirror in $(mirrors); do
    /usr/lib/apt/apt-helper download-file "${mirror%/}/pool/main/h/hiredis/$file" "$archive" \
      "SHA256:$sha256" && break
  done
  if [ ! -f "$archive" ]; then
    echo "no mirror that apt is configured with gave $file"
    exit 1
  fi
  # Another set-up may do the same: what is there is whole at any moment.
  if mkdir -p "${kept%/*}" && cp "$archive" "$kept.$$"; then mv "$kept.$$" "$kept"; fi
fi

tar -xzf "$archive" -C "$work"
cmake -S "$work/hiredis-$version" -B "$work/build" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
  -DBUILD_SHARED_LIBS=OFF -DDISABLE_TESTS=ON \
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_C_FLAGS=-fvisibility=hidden
cmake --build "$work/build"
cmake --install "$work/build"
