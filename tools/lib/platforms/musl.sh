# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2016 # variables of tools/platforms; what an inner shell expands
# Another C library, for tools/platforms: in a bare Debian 12 the static library and its tests are built with
# musl-gcc, and linked without any shared library. Debian has OpenSSL and cmocka for glibc alone, so they are built
# from its sources. The program `latchkey` is not built: its tools are Lua modules, which a static program cannot load.

add_musl() {
  # Those of security updates are not on every mirror.
  sed '/-security/d; s/^deb /deb-src /' "$system/etc/apt/sources.list.d/debian.list" >"$system/etc/apt/sources.list.d/source.list"
  as_root bash -euc '
    apt-get update
    apt-get install -y --no-install-recommends gcc libc6-dev musl-tools linux-libc-dev make perl dpkg-dev cmake \
      ninja-build pkgconf luajit lua-argparse lua-cjson lua-penlight lua-filesystem lua-luaossl lua-posix \
      redis-server openssl
    mkdir -p /opt/musl/bin /opt/musl/kernel && cd /opt/musl
    # The headers of the kernel, which musl leaves to it, and none of glibc.
    ln -sf /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" kernel/
    printf "#!/bin/sh\nexec musl-gcc -idirafter /opt/musl/kernel \"\$@\"\n" >bin/cc
    chmod +x bin/cc
    apt-get source openssl cmocka
    echo "musl $(dpkg-query -W -f "\${Version}" musl)"'
}

build_its_libraries() {
  as_root bash -euc '
    export CC=/opt/musl/bin/cc
    (cd /opt/musl/openssl-*/ && ./Configure "linux-$(uname -m)" no-shared no-tests no-engine no-dso no-async \
      --prefix=/opt/musl --libdir=lib --openssldir=/etc/ssl && make -j 2 build_libs && make install_dev)
    (cd /opt/musl/cmocka-*/ && cmake -S . -B static -G Ninja -DCMAKE_INSTALL_PREFIX=/opt/musl -DCMAKE_INSTALL_LIBDIR=lib \
      -DWITH_STATIC_LIB=ON -DWITH_EXAMPLES=OFF && cmake --build static && cmake --install static)
    (cd /opt/musl/lib && mv libcmocka-static.a libcmocka.a && rm libcmocka.so*)
    tools/lib/hiredis.sh "$PWD/build/deps"' &&
    echo 'OpenSSL, cmocka, hiredis'
}

build_static() {
  as_root env CC=/opt/musl/bin/cc PKG_CONFIG_LIBDIR=/opt/musl/lib/pkgconfig bash -euc '
    cmake --preset ci -DBUILD_SHARED_LIBS=OFF -DOPENSSL_ROOT_DIR=/opt/musl -DOPENSSL_USE_STATIC_LIBS=ON \
      -DCMAKE_EXE_LINKER_FLAGS=-static
    cmake --build build -j 2 --target latchkey_static $(basename -s .c -a c/tests/unit/test_*.c c/tests/live/test_*.c)
    ! readelf -l build/tests/test_lock | grep -q INTERP' &&
    echo "$(as_root sh -c 'ls c/src/*/*.c | wc -l') files, no warnings; nothing shared"
}

on_musl() {
  local platform=$1 suite=bookworm user=root clone=/root/latchkey system=$home/root-$1 emulator=''
  step "$platform" 'a clone' prepare && step "$platform" 'musl and the sources' add_musl &&
    step "$platform" 'its libraries' build_its_libraries && step "$platform" 'the build' build_static || return
  step "$platform" 'unit tests' run_tests unit
  step "$platform" 'live tests' run_tests live
}
