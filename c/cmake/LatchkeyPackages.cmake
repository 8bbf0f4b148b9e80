# SPDX-License-Identifier: Apache-2.0
# Debian packages, one for each component of the installation: `cmake --preset packages`, then cpack.
if(NOT LK_PACKAGES)
  return()
endif()
find_program(LK_GZIP gzip REQUIRED)
# Without it cpack makes packages that ask for no library, and only says so.
find_program(LK_SHLIBDEPS dpkg-shlibdeps REQUIRED)

set(lk_version_full "${PROJECT_VERSION}-1")
set(lk_names_lib liblatchkey0)
set(lk_names_dev liblatchkey-dev)
set(lk_names_program latchkey)
set(lk_names_scripts latchkey-scripts)
set(lk_components lib dev program scripts)

# Debian wants an address in each package. The project has none, and .example can be nobody's: who
# hands packages on gives the address that answers for them.
set(LK_MAINTAINER "The latchkey maintainers <maintainers@latchkey.example>" CACHE STRING
  "Who answers for the Debian packages, as \"Name <address>\"")
if(NOT LK_MAINTAINER MATCHES "^[^<>]+ <[^<>@ ]+@[^<>@ ]+>$")
  message(FATAL_ERROR "LK_MAINTAINER is '${LK_MAINTAINER}'; it is \"Name <address>\"")
endif()

# As Debian builds: the C library checks the bounds of buffers, and no table of addresses can be
# written once the program runs. Level 3 checks also buffers whose size is known as they are made;
# gcc has it from version 12 on.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
  set(lk_fortify 3)
else()
  set(lk_fortify 2)
endif()
target_compile_options(latchkey_flags INTERFACE
  -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${lk_fortify} -fstack-protector-strong)
target_link_options(latchkey_flags INTERFACE -Wl,-z,relro,-z,now)

# What every package of Debian has: its licences and a log, and man pages that are compressed.
string(TIMESTAMP lk_rfc_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file("${PROJECT_SOURCE_DIR}/c/packaging/changelog.in" packaging/changelog.Debian @ONLY)
set(lk_log "${PROJECT_BINARY_DIR}/packaging/changelog.Debian")
execute_process(COMMAND "${LK_GZIP}" -9nf "${lk_log}" COMMAND_ERROR_IS_FATAL ANY)
foreach(component IN LISTS lk_components)
  install(FILES c/packaging/copyright "${lk_log}.gz" COMPONENT ${component}
    DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/${lk_names_${component}}")
endforeach()
install(CODE "
  set(man \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}\")
  file(GLOB pages \"\${man}/man1/*.1\" \"\${man}/man7/*.7\")
  if(pages)
    execute_process(COMMAND \"${LK_GZIP}\" -9nf \${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()"
  COMPONENT program)
install(CODE "
  file(GLOB pages \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man3/*.3\")
  if(pages)
    execute_process(COMMAND \"${LK_GZIP}\" -9nf \${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()"
  COMPONENT dev)

# Read by cpack itself, which dates what it packs by this.
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_BINARY_DIR}/packaging/date.cmake")
file(WRITE "${CPACK_PROJECT_CONFIG_FILE}" "set(ENV{SOURCE_DATE_EPOCH} ${lk_epoch})\n")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed locks on Redis and Valkey, as Lua scripts")
set(CPACK_PACKAGE_CONTACT "${LK_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_STRIP_FILES ON)
# CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS is subject to the umask.
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_BINARY_DIR}/packaging/modes.cmake")
file(WRITE "${CPACK_PRE_BUILD_SCRIPTS}" [[
file(GLOB_RECURSE paths LIST_DIRECTORIES true "${CPACK_TEMPORARY_DIRECTORY}/*")
foreach(path IN LISTS paths)
  if(IS_DIRECTORY "${path}" AND NOT IS_SYMLINK "${path}")
    file(CHMOD "${path}" DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
      GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
endforeach()
]])
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL ${lk_components})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
foreach(component IN LISTS lk_components)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${lk_names_${component}})
endforeach()

set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIB_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/c/packaging/triggers")
set(CPACK_COMPONENT_LIB_DESCRIPTION "\
Takes locks on a Redis or Valkey server, keeps their leases alive in the
background, wakes waiters by message, and says when a lock was lost. On the
wire it is Redisson's.")

set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# Who links statically needs what the static libraries of others need.
set(lk_dev_needs "libc6-dev, libssl-dev")
if(NOT LK_HIREDIS_BUILT_IN)
  string(APPEND lk_dev_needs ", libhiredis-dev")
endif()
pkg_check_modules(LK_CRYPTO REQUIRED QUIET libcrypto)
foreach(pair IN ITEMS "z zlib1g-dev" "zstd libzstd-dev")
  separate_arguments(pair)
  list(POP_FRONT pair library)
  if(library IN_LIST LK_CRYPTO_STATIC_LIBRARIES)
    string(APPEND lk_dev_needs ", ${pair}")
  endif()
endforeach()
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "liblatchkey0 (= ${lk_version_full}), ${lk_dev_needs}")
set(CPACK_COMPONENT_DEV_DESCRIPTION "\
Headers, the static library, what CMake and pkg-config find it by, and a man
page of each function. For programs that take locks on a Redis or Valkey
server by liblatchkey; what is linked with the shared library needs
liblatchkey0 alone.")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "latchkey-scripts (= ${lk_version_full}), \
liblatchkey0 (= ${lk_version_full}), lua-argparse, lua-cjson, lua-filesystem, lua-luaossl, \
lua-penlight, lua-posix")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "redis-server | valkey-server, lua-readline")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "lua-busted, openssh-client")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "\
Runs commands while it holds a lock; shows, breaks and explains locks; checks,
tests, bundles and loads the scripts that they are made of.")

set(CPACK_DEBIAN_SCRIPTS_PACKAGE_SECTION database)
set(CPACK_DEBIAN_SCRIPTS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_SCRIPTS_PACKAGE_SHLIBDEPS OFF)
set(CPACK_COMPONENT_SCRIPTS_DESCRIPTION "\
One self-contained file per operation, run by the server, with a header that
says its keys, arguments, replies and errors.")
include(CPack)
