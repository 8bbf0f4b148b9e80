#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a temporary folder and uses it as applications do, by both libraries and both
# ways of finding them. Speaks TAP.
#   run.sh BUILD
set -u
build=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$here/../../..
work=$(mktemp -d)
prefix=$work/installed
export LATCHKEY_LOCAL_DIR="$work/server"
# shellcheck disable=SC2317 # called by the trap
leave() {
  "$prefix/bin/latchkey" local stop >&2
  rm -rf "$work"
}
trap leave EXIT
trap 'exit 130' INT TERM

number=0
check() {
  number=$((number + 1))
  title=$1
  shift
  if "$@" >&2; then echo "ok $number - $title"; else echo "not ok $number - $title"; fi
}

# check_with HEADER TITLE COMMAND...: skipped where that header is not installed.
check_with() {
  header=$1
  shift
  if printf '#include <stdio.h>\n#include <%s>\n' "$header" | cc -E - >/dev/null 2>&1; then
    check "$@"
  else
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $header is not installed"
  fi
}

# By the words of the page on installing, with folders of this test.
installs() {
  words=$(grep -x 'cmake --install build --prefix /usr/local' "$root/docs/howto/install.md") &&
    echo "$words" | sed "s#build#'$build'#; s#/usr/local#'$prefix'#" | sh -eu
}

by_cmake() {
  cmake -S "$here" -B "$work/cmake-$1" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DBUILD_SHARED_LIBS="$1" && cmake --build "$work/cmake-$1" && "$work/cmake-$1/consumer" local:
}

# The header is written when the application is built, and again when a contract changes.
own_scripts() {
  cp -R "$here/own" "$work/own scripts" &&
    cmake -S "$work/own scripts" -B "$work/own" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
      -DBUILD_SHARED_LIBS=ON && cmake --build "$work/own" && "$work/own/own" local: &&
    sed -i 's/1\.\.86400000/10..86400000/' "$work/own scripts/scripts/counter/up.contract" &&
    cmake --build "$work/own" && "$work/own/own" local: &&
    grep 'lease is 10 to 86400000' "$work/own/own-scripts/counter.h"
}

# The static library is named by its file: the linker prefers the shared one that lies beside it.
by_pkg_config() {
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name latchkey.pc)")
  export PKG_CONFIG_PATH
  libraries=$(pkg-config "$@" --libs latchkey)
  case $* in
  *--static*) libraries=$(echo "$libraries" | sed 's/-llatchkey/-l:liblatchkey.a/') ;;
  esac
  # shellcheck disable=SC2046,SC2086 # lists of flags
  cc $(pkg-config --cflags latchkey) "$here/main.c" -o "$work/by-pkg-config" $libraries \
    -Wl,-rpath,"$(pkg-config --variable=libdir latchkey)" && "$work/by-pkg-config" local:
}

# The blocks of the README in one language.
readme() { awk -v open="^\`\`\`$1( |\$)" '/^```/ { on = $0 ~ open; next } on' "$root/README.md"; }

readme_in_c() {
  readme c >"$work/readme.c"
  # shellcheck disable=SC2046 # lists of flags
  cc "$work/readme.c" -o "$work/readme" $(pkg-config --cflags --libs latchkey) \
    -Wl,-rpath,"$(pkg-config --variable=libdir latchkey)" && "$work/readme"
}
readme_in_shell() {
  readme sh >"$work/readme.sh"
  PATH=$prefix/bin:$PATH sh -eu "$work/readme.sh" | grep 'it works'
}

# Each example, with no more than an application has; they know by themselves what should happen.
example() {
  # shellcheck disable=SC2046 # lists of flags
  cc "$1" -o "$work/example" $(pkg-config --cflags --libs latchkey) \
    -Wl,-rpath,"$(pkg-config --variable=libdir latchkey)" -pthread ${2:+"$2"} &&
    "$work/example" && "$work/example"
}

# An application that links the distribution's own hiredis has two of them in one process.
beside_hiredis() {
  # shellcheck disable=SC2046 # lists of flags
  cc "$here/beside_hiredis.c" -o "$work/beside" $(pkg-config --cflags latchkey) \
    -L"$(pkg-config --variable=libdir latchkey)" "$1" -lhiredis -lssl -lcrypto -pthread \
    -Wl,-rpath,"$(pkg-config --variable=libdir latchkey)" && "$work/beside" local:
}

# Distributions say from the root on where libraries are: the file of pkg-config and the program's
# way to the library follow.
absolute_folders() {
  cmake -S "$root" -B "$work/absolute" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX='/opt/a b' -DCMAKE_INSTALL_LIBDIR='/opt/a b/lib64' &&
    PKG_CONFIG_PATH=$work/absolute pkg-config --cflags --libs latchkey |
    grep -F -- '-I/opt/a\ b/include -L/opt/a\ b/lib64 -llatchkey' &&
    grep -F "\$ORIGIN/../lib64" "$work/absolute/c/cli/cmake_install.cmake"
}

# Names of others, hiredis' above all, must not meet an application's own.
exports_only_its_own() {
  others=$(nm "$@" "$library" | awk 'NF == 3 && $3 !~ /^lk_/ { print $3 }')
  echo "$others"
  [ -f "$library" ] && [ -z "$others" ]
}

# Where man and the shells look below a prefix.
has_manuals() {
  share=$prefix/share
  [ -s "$share/man/man1/latchkey-exec.1" ] &&
    [ -s "$share/bash-completion/completions/latchkey" ] &&
    [ -s "$share/fish/vendor_completions.d/latchkey.fish" ] &&
    [ -s "$share/zsh/site-functions/_latchkey" ]
}

examples=$(cd "$root/c/examples" && ls -- *.c)
echo "1..$((15 + $(echo "$examples" | wc -l)))"
check 'installs' installs
check 'shared library, by CMake' by_cmake ON
check 'static library, by CMake' by_cmake OFF
check 'scripts of its own, by CMake' own_scripts
check 'shared library, by pkg-config' by_pkg_config
check 'static library, by pkg-config' by_pkg_config --static
check 'libraries in a folder that is named from the root on' absolute_folders
check 'the example in C of the README' readme_in_c
check 'the example in shell of the README' readme_in_shell
library=$(find "$prefix" -name liblatchkey.so)
check 'the shared library exports its own names alone' exports_only_its_own -D --defined-only
library=$(find "$prefix" -name liblatchkey.a)
check 'the static library exports its own names alone' exports_only_its_own -g --defined-only
check 'the installed program finds its scripts and tools' \
  env -u LATCHKEY_HOME "$prefix/bin/latchkey" eval --mock lock/inspect --name job
check 'man pages and completions are where they are looked for' has_manuals
for file in $examples; do
  source=$root/c/examples/$file name=${file%.c}
  case $name in
  libuv) check_with uv.h "the example $name" example "$source" -luv ;;
  libev) check_with ev.h "the example $name" example "$source" -lev ;;
  *) check "the example $name" example "$source" ;;
  esac
done
check_with hiredis/hiredis.h 'beside another hiredis, shared' beside_hiredis -llatchkey
check_with hiredis/hiredis.h 'beside another hiredis, static' beside_hiredis -l:liblatchkey.a
