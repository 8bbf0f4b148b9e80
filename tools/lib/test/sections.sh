# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The sections of tools/test, one function each; sections.tsv says what they are for.

if [ -n "$LK_FULL" ]; then torture_s=600; else torture_s=10; fi

section_build() { check 'gcc, release' tools/lib/build.sh ci "$LK_BUILD"; }

sections_are_listed() { ! list_sections | grep -vxFf CONTRIBUTING.md; }

section_lint() {
  local files
  check 'latchkey lint' "$LK_BUILD/latchkey" lint
  have luacheck 'luacheck' && check 'luacheck' luacheck -q tools spec scripts
  mapfile -t files < <(find c -name '*.[ch]')
  have clang-format 'clang-format' &&
    check 'clang-format' clang-format --dry-run -Werror "${files[@]}"
  mapfile -t files < <(grep -rlE '^#!/(bin/sh|usr/bin/env bash)|shellcheck shell=' tools c .ci)
  check 'CONTRIBUTING lists the sections' sections_are_listed
  have shellcheck 'shellcheck' && check 'shellcheck' shellcheck -x "${files[@]}"
}

# specs RUN BUILD [VARIABLE=VALUE...]: a run of .busted with the library of a build.
specs() {
  local run=$1 build=$2
  shift 2
  have busted "specs ($run)" && tap "specs ($run)" env LATCHKEY_LIB="$build/liblatchkey.so" \
    LATCHKEY_PROGRAM="$build/latchkey" "$@" busted --run="$run" -o TAP
}
# LuaJIT without the shell that busted would start it by: no shell runs under ThreadSanitizer.
live_specs() {
  local build=$1
  shift
  have busted 'specs (live)' &&
    tap 'specs (live)' tools/lib/test/with_server.sh env LATCHKEY_LIB="$build/liblatchkey.so" "$@" \
      luajit "$(command -v busted)" --ignore-lua --run=live -o TAP
}

section_specs() { specs default "$LK_BUILD"; }
section_specs_puc() { have lua5.1 'specs (puc)' && specs puc "$LK_BUILD"; }
section_specs_live() { live_specs "$LK_BUILD"; }
section_coverage() { specs coverage "$LK_BUILD"; }

# has_c_tests BUILD TITLE: were they configured? If not, TITLE is skipped.
has_c_tests() {
  grep -q '^CMOCKA_FOUND:INTERNAL=1$' "$1/CMakeCache.txt" ||
    { skip "$2" 'cmocka is not installed' && return 1; }
}

# c_tests LABEL BUILD: the programs of c/tests/LABEL.
c_tests() {
  local source name
  has_c_tests "$2" "$1" || return
  for source in c/tests/"$1"/test_*.c; do
    name=$(basename "$source" .c)
    tap "$1/$name" env CMOCKA_MESSAGE_OUTPUT=TAP "$2/tests/$name"
  done
}

section_unit() {
  c_tests unit "$LK_BUILD"
  c_tests torture "$LK_BUILD"
}
section_live() { c_tests live "$LK_BUILD"; }

torture() {
  has_c_tests "$1" 'torture' && check "torture, $2 s" "$1/tests/torture" --seconds "$2"
}
section_torture() { torture "$LK_BUILD" "$torture_s"; }

section_sabotage() {
  has_c_tests "$LK_BUILD" 'sabotage' && have patch 'sabotage' && c/tests/torture/sabotage "$LK_BUILD" |
    sed -e 's/^caught/ok -/' -e 's/^MISSED/not ok -/'
}

section_consumer() { tap 'consumer' c/tests/consumer/run.sh "$LK_BUILD"; }

section_cost() {
  has_c_tests "$LK_BUILD" 'cost' && have strace 'cost' && have valgrind 'cost' && tap 'cost' c/tests/cost/run.sh "$LK_BUILD"
}

section_clang() {
  have clang 'clang' || return
  check 'clang' tools/lib/build.sh clang build/clang
  c_tests unit build/clang
  torture build/clang 10
}

# sanitized NAME RUNTIME: unit and live tests, live specs and torture; the runtime is loaded into
# LuaJIT before the library.
sanitized() {
  local build=build/$1 runtime
  check "build ($1)" tools/lib/build.sh "$1" "$build"
  c_tests unit "$build"
  c_tests live "$build"
  runtime=$(gcc -print-file-name="$2")
  live_specs "$build" LD_PRELOAD="$runtime"
  torture "$build" 10
}
section_asan() { sanitized asan libasan.so; }
section_tsan() { sanitized tsan libtsan.so; }

section_demo() { check 'demo' tools/demo; }
