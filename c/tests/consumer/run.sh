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
# CMake keeps one list of what was installed from a build; that of somebody's own installation is needed to remove it.
manifest=$build/install_manifest.txt
# shellcheck disable=SC2317 # called by the trap
leave() {
  if [ -x "$prefix/bin/latchkey" ]; then "$prefix/bin/latchkey" local stop >&2; fi
  rm -f "$manifest"
  if [ -e "$work/manifest" ]; then mv "$work/manifest" "$manifest"; fi
  rm -rf "$work"
}
trap leave EXIT
trap 'exit 130' HUP INT TERM
if [ -e "$manifest" ]; then mv "$manifest" "$work/manifest"; fi

# A test that cannot be made here says why in $skipped, and succeeds.
number=0
check() {
  number=$((number + 1))
  title=$1
  skipped=
  shift
  if "$@" >&2; then
    echo "ok $number - $title${skipped:+ # SKIP $skipped}"
  else
    echo "not ok $number - $title"
  fi
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

# Folders that are made on the way have the mode of the umask, unless they are given one.
installs_for_all() {
  (umask 077 && cmake --install "$build" --prefix "$work/closed") || return
  closed=$(find "$work/closed" -mindepth 1 ! -type l ! -perm -004 -o -mindepth 1 -type d ! -perm -005)
  echo "closed: $closed"
  [ -z "$closed" ]
}

# A user for whom modes count.
as_somebody() {
  if [ "$(id -u)" -ne 0 ]; then "$@"; else setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; fi
}
tells_closed_from_absent() {
  if [ -e /usr/local/share/latchkey ]; then # it is looked at, too
    skipped='latchkey is installed in /usr/local'
    return
  fi
  chmod 711 "$work" "$work/closed" && chmod 000 "$work/closed/share/latchkey/tools" || return
  as_somebody env -u LATCHKEY_HOME "$work/closed/bin/latchkey" explain 75 >"$work/said" 2>&1
  code=$?
  chmod 755 "$work/closed/share/latchkey/tools"
  rm -rf "$work/closed/share/latchkey/tools"
  env -u LATCHKEY_HOME "$work/closed/bin/latchkey" explain 75 >"$work/said.absent" 2>&1
  cat "$work/said" "$work/said.absent"
  [ $code -eq 70 ] && grep 'latchkey/tools/latchkey/cli/init.lua: Permission denied; ' "$work/said" &&
    grep 'were not found (.*No such file or directory); ' "$work/said.absent"
}

# The scripts and tools of a clone, with the library that the program is linked with.
at_home_in_a_clone() {
  for words in 'explain 75' 'ls --url local:'; do
    # shellcheck disable=SC2086 # a list of words
    env -u LATCHKEY_HOME "$prefix/bin/latchkey" $words >"$work/at home" &&
      LATCHKEY_HOME=$root "$prefix/bin/latchkey" $words >"$work/in a clone" &&
      cmp "$work/at home" "$work/in a clone" || return
  done
}
refuses_no_home() {
  LATCHKEY_HOME=/no/such/folder "$prefix/bin/latchkey" explain 75 >"$work/said" 2>&1
  code=$?
  cat "$work/said"
  [ $code -eq 70 ] && [ "$(wc -l <"$work/said")" -eq 1 ] &&
    grep '^latchkey: /no/such/folder/tools/latchkey/cli/init.lua: No such file or directory; .*unset it' "$work/said"
}

# Behind what the program finds first there is no such module.
names_a_missing_module() {
  cp -R "$prefix" "$work/bare" &&
    printf '%s\n' "error(\"module 'argparse' not found:\\n\\tno file\")" >"$work/bare/share/latchkey/tools/argparse.lua"
  env -u LATCHKEY_HOME "$work/bare/bin/latchkey" explain 75 >"$work/said" 2>&1
  code=$?
  cat "$work/said"
  [ $code -eq 70 ] && [ "$(wc -l <"$work/said")" -eq 1 ] &&
    grep '^latchkey: the Lua module argparse is not installed; .* install lua-argparse$' "$work/said"
}

# What an older version had and this one has not is gone; what others put beside it stays.
installs_over_an_older_one() {
  share=$prefix/share/latchkey
  mkdir -p "$share/scripts/old" && touch "$share/scripts/old/take.lua" "$share/scripts/lock/take.lua" \
    "$share/tools/latchkey/cli/commands/old.lua" "$share/mine" &&
    installs && [ -e "$share/mine" ] && [ ! -e "$share/scripts/old" ] && rm "$share/mine" &&
    [ ! -e "$share/scripts/lock/take.lua" ] && [ ! -e "$share/tools/latchkey/cli/commands/old.lua" ]
}

by_cmake() {
  cmake -S "$here" -B "$work/cmake-$1" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DBUILD_SHARED_LIBS="$1" && cmake --build "$work/cmake-$1" && "$work/cmake-$1/consumer" local:
}

# A part of the application's own build, which keeps its kind of build; what they link with is found.
part_of_another() {
  mkdir -p "$work/whole" && cp "$here/main.c" "$work/whole" && {
    printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(whole LANGUAGES C)' \
      "add_subdirectory(\"$root\" latchkey EXCLUDE_FROM_ALL)" 'add_executable(consumer main.c)' \
      'target_link_libraries(consumer PRIVATE latchkey::latchkey)' >"$work/whole/CMakeLists.txt"
    cmake -S "$work/whole" -B "$work/whole/$1" -G Ninja -DBUILD_SHARED_LIBS="$1"
  } && grep -x 'CMAKE_BUILD_TYPE:STRING=' "$work/whole/$1/CMakeCache.txt" && ninja -C "$work/whole/$1" -n consumer
}

# asks_for WORDS: the application with these behind find_package(latchkey.
asks_for() {
  rm -rf "$work/asks" && mkdir "$work/asks" && cp "$here/main.c" "$work/asks" &&
    sed "s/latchkey 0.1 REQUIRED/latchkey $1/" "$here/CMakeLists.txt" >"$work/asks/CMakeLists.txt" &&
    cmake -S "$work/asks" -B "$work/asks/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix"
}
finds_what_is_there_alone() {
  version=$(cut -d . -f 1-2 "$root/VERSION")
  asks_for "$version REQUIRED" && ! asks_for '99.0 REQUIRED' && ! asks_for "$version REQUIRED COMPONENTS nothing"
}

# each_alone COMMAND...: of a compiler, for each header by itself, with what applications may have switched on.
each_alone() {
  for header in "$prefix"/include/latchkey/*.h; do
    printf '#include <latchkey/%s>\nint unused;\n' "${header##*/}" >"$work/alone.c"
    "$@" -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror -fsyntax-only -I"$prefix/include" "$work/alone.c" ||
      return
  done
}
headers_in_c() { each_alone cc -std=c11 -Wstrict-prototypes; }
headers_in_cxx() {
  if command -v clang; then
    each_alone clang -x c++ -std=c++11
  elif command -v c++; then
    each_alone c++ -x c++ -std=c++11
  else
    skipped='there is no compiler of C++'
  fi
}
refused_with_short_enums() {
  for header in "$prefix"/include/latchkey/*.h; do
    printf '#include <latchkey/%s>\n' "${header##*/}" >"$work/alone.c"
    cc -fshort-enums -fsyntax-only -I"$prefix/include" "$work/alone.c" 2>&1 | grep -m 1 'fno-short-enums' || return
  done
}

# The header is written when the application is built, and again when a contract changes.
# One that comes may be older than what was written, as `mv`, `cp -p` and `tar` leave it.
own_scripts_come_and_go() {
  scripts="$work/own scripts/scripts/counter"
  header=$work/own/own-scripts/counter.h
  for kind in lua contract; do
    sed 's,counter/up,counter/more,' "$scripts/up.$kind" >"$scripts/more.$kind" &&
      touch -d 2020-01-01 "$scripts/more.$kind" || return
  done
  cmake --build "$work/own" && grep counter_more "$header" && rm "$scripts"/more.* &&
    cmake --build "$work/own" && ! grep counter_more "$header"
}

own_scripts() {
  cp -R "$here/own" "$work/own scripts" &&
    cmake -S "$work/own scripts" -B "$work/own" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
      -DBUILD_SHARED_LIBS=ON && cmake --build "$work/own" && "$work/own/own" local: &&
    sed -i 's/1\.\.86400000/10..86400000/' "$work/own scripts/scripts/counter/up.contract" &&
    cmake --build "$work/own" && "$work/own/own" local: &&
    grep 'lease is 10 to 86400000' "$work/own/own-scripts/counter.h" && own_scripts_come_and_go
}

own_scripts_refuse_what_they_do_not_know() {
  cp -R "$here/own" "$work/wrong" && sed -i 's/ HEADER / /' "$work/wrong/CMakeLists.txt" &&
    ! cmake -S "$work/wrong" -B "$work/wrong/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
      -DBUILD_SHARED_LIBS=ON >"$work/wrong/said" 2>&1 && grep 'what is counter.h?' "$work/wrong/said"
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
  PATH=$prefix/bin:$PATH sh -eu "$work/readme.sh" >"$work/readme.said" && grep 'it works' "$work/readme.said"
}

# Each example, with no more than an application has; they know by themselves what should happen.
example() {
  # shellcheck disable=SC2046 # lists of flags
  cc "$1" -o "$work/example" $(pkg-config --cflags --libs latchkey) \
    -Wl,-rpath,"$(pkg-config --variable=libdir latchkey)" -pthread ${2:+"$2"} &&
    "$work/example" && "$work/example"
}

# A thread that cannot be had ends an example: it joins none that there is not, and does not wait for it.
examples_without_threads() {
  cc -shared -fPIC "$here/no_threads.c" -o "$work/no_threads.so" -ldl || return
  for without in $(cd "$root/c/examples" && grep -l pthread_create -- *.c); do
    # shellcheck disable=SC2046 # lists of flags
    cc "$root/c/examples/$without" -o "$work/without" $(pkg-config --cflags --libs latchkey) \
      -Wl,-rpath,"$(pkg-config --variable=libdir latchkey)" -pthread || return
    code=0
    LD_PRELOAD=$work/no_threads.so timeout 30 "$work/without" 2>"$work/without.said" || code=$?
    echo "$without: exit code $code"
    [ "$code" -eq 1 ] && grep 'no thread' "$work/without.said" || return
  done
}

# By the words of the page on installing: files go, and what else lies there stays.
removes() {
  words=$(grep -x "xargs -d '.n' rm -f <build/install_manifest.txt" "$root/docs/howto/install.md") || return
  touch "$prefix/bin/another"
  echo "$words" | sed "s#build/#'$build'/#" | sh -eu &&
    find "$prefix" ! -type d >"$work/left" && cat "$work/left" && [ "$(cat "$work/left")" = "$prefix/bin/another" ]
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
    PKG_CONFIG_PATH=$work/absolute pkg-config --variable=toolsdir latchkey |
    grep -xF '/opt/a\ b/share/latchkey/tools' &&
    PKG_CONFIG_PATH=$work/absolute pkg-config --cflags --libs latchkey |
    grep -F -- '-I/opt/a\ b/include -L/opt/a\ b/lib64 -llatchkey' &&
    grep -F "\$ORIGIN/../lib64" "$work/absolute/c/cli/cmake_install.cmake"
}

# Debian has libraries a folder deeper than others; the tools are found by the words of their page.
debian_folders() {
  words=$(grep '^folder=' "$root/docs/reference/lua.md") &&
    cmake -S "$root" -B "$work/debian" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
      -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu &&
    mkdir -p "$work/system/usr/share/latchkey/tools" "$work/system/usr/lib/x86_64-linux-gnu/pkgconfig" &&
    cp "$work/debian/latchkey.pc" "$work/system/usr/lib/x86_64-linux-gnu/pkgconfig" &&
    PKG_CONFIG_PATH=$work/system/usr/lib/x86_64-linux-gnu/pkgconfig sh -euc "$words"'
      [ "$(realpath "$folder")" = "$1" ]' sh "$(realpath "$work/system/usr/share/latchkey/tools")"
}

# For another processor there are no man pages, since the program that says its help does not run here.
crossed() {
  cmake -S "$root" -B "$work/crossed" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux &&
    ninja -C "$work/crossed" -t targets all >"$work/targets" && grep '^latchkey_program:' "$work/targets" &&
    ! grep '^latchkey_manual:' "$work/targets" && ! grep '/manual/' "$work/crossed/cmake_install.cmake"
}

# Names of others, hiredis' above all, must not meet an application's own.
exports_only_its_own() {
  names=$(nm "$@" "$library" | awk 'NF == 3 { print $3 }')
  others=$(echo "$names" | grep -v '^lk_')
  echo "$others"
  echo "$names" | grep -x 'lk_client_open' && [ -z "$others" ]
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
echo "1..$((32 + $(echo "$examples" | wc -l)))"
check 'installs for all users, under any umask' installs_for_all
check 'says what it may not read, and what is not there' tells_closed_from_absent
# The last one: the build's list of files is of that.
check 'installs' installs
check 'installs over an older version, of which nothing stays' installs_over_an_older_one
check 'shared library, by CMake' by_cmake ON
check 'static library, by CMake' by_cmake OFF
check 'a part of another build, shared' part_of_another ON
check 'a part of another build, static' part_of_another OFF
check 'a version or component that is not there is not found' finds_what_is_there_alone
check 'each header by itself, as C' headers_in_c
check 'each header by itself, as C++' headers_in_cxx
check 'each header by itself, with short enums, is refused' refused_with_short_enums
check 'scripts of its own, by CMake' own_scripts
check 'scripts of its own: a word too many is refused' own_scripts_refuse_what_they_do_not_know
check 'shared library, by pkg-config' by_pkg_config
check 'static library, by pkg-config' by_pkg_config --static
check 'libraries in a folder that is named from the root on' absolute_folders
check 'libraries in a folder for a processor, as on Debian' debian_folders
check 'for another processor' crossed
check 'the example in C of the README' readme_in_c
check 'the example in shell of the README' readme_in_shell
library=$(find "$prefix" -name liblatchkey.so)
check 'the shared library exports its own names alone' exports_only_its_own -D --defined-only
library=$(find "$prefix" -name liblatchkey.a)
check 'the static library exports its own names alone' exports_only_its_own -g --defined-only
check 'the installed program finds its scripts and tools' \
  env -u LATCHKEY_HOME "$prefix/bin/latchkey" eval --mock lock/inspect --name job
check 'the installed program at home in a clone' at_home_in_a_clone
check 'the installed program refuses a home that is none, in a line' refuses_no_home
check 'a Lua module that is missing is named in a line' names_a_missing_module
check 'man pages and completions are where they are looked for' has_manuals
for file in $examples; do
  source=$root/c/examples/$file name=${file%.c}
  case $name in
  libuv) check_with uv.h "the example $name" example "$source" -luv ;;
  libev) check_with ev.h "the example $name" example "$source" -lev ;;
  *) check "the example $name" example "$source" ;;
  esac
done
check 'the examples without threads' examples_without_threads
check_with hiredis/hiredis.h 'beside another hiredis, shared' beside_hiredis -llatchkey
check_with hiredis/hiredis.h 'beside another hiredis, static' beside_hiredis -l:liblatchkey.a
"$prefix/bin/latchkey" local stop >&2
check 'what was installed is removed' removes
