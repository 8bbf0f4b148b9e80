# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2016 # variables of tools/platforms; what an inner shell expands
# Another processor, for tools/platforms: in a bare Debian 12 of amd64, what is tested is built by a cross compiler,
# beside the libraries of that processor. i386 runs there as it is, arm64 by qemu-user.

# Debian's own libraries of both, at the same versions: those of security updates come one after the other.
add_processor() {
  sed -i '/-security/d' "$system/etc/apt/sources.list.d/debian.list"
  # lua-term can be there for one processor only, and luajit: busted's are of the one to be tested.
  as_root bash -euc '
    dpkg --add-architecture "$1" && apt-get update
    apt-get install -y --no-install-recommends libc6-dev cmake ninja-build pkgconf luajit lua-argparse lua-cjson \
      lua-penlight lua-filesystem lua-luaossl lua-posix lua-busted redis-server "gcc-$2" ${3:+"$3"}
    apt-get install -y --no-install-recommends libssl-dev:"$1" libjansson-dev:"$1" libcmocka-dev:"$1" \
      libluajit-5.1-dev:"$1" zlib1g-dev:"$1" lua-cjson:"$1" lua-filesystem:"$1" lua-luaossl:"$1" lua-posix:"$1" \
      lua-system:"$1"
    mkdir -p /opt/tested && cd /opt/tested && apt-get download luajit:"$1" lua-term:"$1"
    for package in *.deb; do dpkg -x "$package" .; done' \
    sh "$processor" "$triplet" "${emulator:+qemu-user-static}" && echo "with $triplet-gcc"
}

# The library, the program, and the tests of its insides; every warning is an error.
build_crossed() {
  printf '%s\n' 'set(CMAKE_SYSTEM_NAME Linux)' "set(CMAKE_C_COMPILER $triplet-gcc)" \
    "set(CMAKE_LIBRARY_ARCHITECTURE $libraries)" >"$system/tmp/processor.cmake"
  as_root env PKG_CONFIG_LIBDIR="/usr/lib/$libraries/pkgconfig:/usr/share/pkgconfig" \
    CMAKE_TOOLCHAIN_FILE=/tmp/processor.cmake bash -euc '
    tools/lib/hiredis.sh "$PWD/build/deps"
    cmake --preset ci
    cmake --build build -j 2 --target latchkey_shared latchkey_program $(basename -s .c -a c/tests/unit/test_*.c)' &&
    echo "$(as_root sh -c 'ls c/src/*/*.c c/cli/*.c | wc -l') files, no warnings"
}

# run_tests LABEL: each program of c/tests/LABEL; TAP is counted.
run_tests() {
  local test code=0 said=$system/tmp/$1.tap
  : >"$said"
  for test in "$system$clone"/build/tests/test_*; do
    test=${test##*/}
    [ -f "c/tests/$1/$test.c" ] || continue
    as_root env CMOCKA_MESSAGE_OUTPUT=TAP timeout 600 ${emulator:+"$emulator"} "build/tests/$test" >>"$said" ||
      { echo "$test: exit code $?" && code=1; }
  done
  # cmocka calls what was skipped "not ok"; why it was stands in a line before.
  grep '^not ok' "$said" | grep -v '# SKIP'
  grep '^# does not apply: ' "$said"
  grep -q '^ok' "$said" || code=1
  echo "$(grep -c '^ok' "$said") passed, $(grep -c '^not ok.*# SKIP' "$said") skipped"
  return "$code"
}

# The scripts on the mock, and the mock itself, under that processor's LuaJIT. With an emulator, without what compares
# the mock's numbers with a server's: that is one of amd64, which writes 0/0 with a sign, and 1e100 as the least integer.
run_specs() {
  as_root env LUA_CPATH="/opt/tested/usr/lib/$libraries/lua/5.1/?.so;;" bash -c '
    families=$(ls -d scripts/[a-z]*/ | sed "s/^scripts/spec/")
    mock=$(ls spec/mock/*_spec.lua'"${emulator:+ | grep -v -e /expressions_ -e /fidelity_ -e /random_}"')
    '"$emulator"' /opt/tested/usr/bin/luajit /usr/bin/busted --ignore-lua --run=default \
      -o TAP spec/contract_spec.lua $families $mock' >"$system/tmp/specs.tap"
  grep -A 5 '^not ok' "$system/tmp/specs.tap"
  echo "$(grep -c '^ok' "$system/tmp/specs.tap") passed"
  # busted says at the end how many there were.
  ! grep -q '^not ok' "$system/tmp/specs.tap" && grep -q '^1\.\.[1-9]' "$system/tmp/specs.tap"
}

# on_processor PROCESSOR TRIPLET LIBRARIES [EMULATOR]
on_processor() {
  local platform=$1 processor=$1 triplet=$2 libraries=$3 emulator=${4-}
  local suite=bookworm user=root clone=/root/latchkey system=$home/root-$1
  step "$platform" 'a clone' prepare && step "$platform" 'its compiler and libraries' add_processor &&
    step "$platform" 'the build' build_crossed || return
  step "$platform" 'unit tests' run_tests unit
  step "$platform" 'specs of scripts and mock' run_specs
}
