# SPDX-License-Identifier: Apache-2.0
# What the library needs: hiredis (its parser), OpenSSL, threads, and LuaJIT to generate sources.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(PkgConfig REQUIRED)
find_program(LK_LUAJIT luajit REQUIRED)

# The distribution's hiredis when it is recent enough; otherwise the static one of the set-up, whose
# symbols must not leave the library: an application may have a hiredis of its own.
list(APPEND CMAKE_PREFIX_PATH "${LK_DEPS_DIR}")
pkg_check_modules(HIREDIS IMPORTED_TARGET "hiredis>=1.1")
if(NOT HIREDIS_FOUND)
  message(FATAL_ERROR "hiredis 1.1 or newer was not found; run tools/setup")
endif()
if(HIREDIS_LINK_LIBRARIES MATCHES "libhiredis\\.a")
  set(LK_HIREDIS_BUILT_IN TRUE)
else()
  set(LK_HIREDIS_BUILT_IN FALSE)
endif()
message(STATUS "hiredis ${HIREDIS_VERSION}, built in: ${LK_HIREDIS_BUILT_IN}")
