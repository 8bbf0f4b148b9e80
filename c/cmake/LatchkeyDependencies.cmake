# SPDX-License-Identifier: Apache-2.0
# What the library needs: hiredis (its parser), OpenSSL, threads, and LuaJIT to generate sources. A build that this
# one is a part of links the static library with them.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(PkgConfig REQUIRED)
find_program(LK_LUAJIT luajit REQUIRED)

# The static hiredis of the set-up, where it had to build one; its symbols must not leave the library: an
# application may have a hiredis of its own. It is not asked of pkg-config, which cuts paths at blanks.
# Otherwise the distribution's, when it is recent enough.
set(lk_own_hiredis "${LK_DEPS_DIR}/lib/libhiredis.a")
if(EXISTS "${lk_own_hiredis}")
  set(LK_HIREDIS_BUILT_IN TRUE)
  set(HIREDIS_LINK_LIBRARIES "${lk_own_hiredis}")
  file(STRINGS "${LK_DEPS_DIR}/lib/pkgconfig/hiredis.pc" HIREDIS_VERSION REGEX "^Version:")
  string(REGEX REPLACE "^Version: *" "" HIREDIS_VERSION "${HIREDIS_VERSION}")
  add_library(PkgConfig::HIREDIS INTERFACE IMPORTED)
  target_include_directories(PkgConfig::HIREDIS INTERFACE
    "${LK_DEPS_DIR}/include/hiredis" "${LK_DEPS_DIR}/include")
  target_compile_definitions(PkgConfig::HIREDIS INTERFACE _FILE_OFFSET_BITS=64)
  target_link_libraries(PkgConfig::HIREDIS INTERFACE "${lk_own_hiredis}")
else()
  pkg_check_modules(HIREDIS IMPORTED_TARGET GLOBAL "hiredis>=1.1")
  if(NOT HIREDIS_FOUND)
    message(FATAL_ERROR "hiredis 1.1 or newer was not found; run tools/setup")
  endif()
  if(HIREDIS_LINK_LIBRARIES MATCHES "libhiredis\\.a")
    set(LK_HIREDIS_BUILT_IN TRUE)
  else()
    set(LK_HIREDIS_BUILT_IN FALSE)
  endif()
endif()
message(STATUS "hiredis ${HIREDIS_VERSION}, built in: ${LK_HIREDIS_BUILT_IN}")
