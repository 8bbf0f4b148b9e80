# SPDX-License-Identifier: Apache-2.0
# Installation: library, headers, scripts and tools, and how other builds find them. Its components
# are lib, dev, program and scripts; packages are made of them.
include(CMakePackageConfigHelpers)

install(TARGETS latchkey_shared EXPORT latchkey
  LIBRARY COMPONENT lib NAMELINK_COMPONENT dev)
install(TARGETS latchkey_static EXPORT latchkey ARCHIVE COMPONENT dev)
install(DIRECTORY c/include/latchkey DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev)
# Whole folders: what an older version had in them would be taken for this one's.
foreach(pair IN ITEMS "scripts scripts" "program tools/latchkey")
  separate_arguments(pair)
  list(POP_FRONT pair component)
  lk_installed(folder "${LK_SHARE_DIR}/${pair}")
  file(REAL_PATH "${pair}" lk_source)
  install(CODE "
  file(REAL_PATH \"${folder}\" real)
  if(NOT real STREQUAL \"${lk_source}\")
    file(REMOVE_RECURSE \"${folder}\")
  endif()" COMPONENT ${component})
endforeach()
install(DIRECTORY scripts DESTINATION "${LK_SHARE_DIR}" COMPONENT scripts)
# One folder, whole; what stands beside it in tools/ is the workshop.
install(DIRECTORY tools/latchkey DESTINATION "${LK_SHARE_DIR}/tools" COMPONENT program)
install(DIRECTORY "${PROJECT_BINARY_DIR}/generated" DESTINATION "${LK_SHARE_DIR}/tools/latchkey"
  COMPONENT program FILES_MATCHING PATTERN "*.lua")

set(lk_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/latchkey")
install(EXPORT latchkey NAMESPACE latchkey:: FILE latchkey-targets.cmake
  DESTINATION "${lk_config_dir}" COMPONENT dev)
configure_package_config_file(c/cmake/latchkey-config.cmake.in latchkey-config.cmake
  INSTALL_DESTINATION "${lk_config_dir}" PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(latchkey-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/latchkey-config.cmake"
  "${PROJECT_BINARY_DIR}/latchkey-config-version.cmake" c/cmake/LatchkeyScripts.cmake DESTINATION "${lk_config_dir}"
  COMPONENT dev)

if(LK_HIREDIS_BUILT_IN)
  set(lk_requires_private "libssl libcrypto")
else()
  set(lk_requires_private "hiredis libssl libcrypto")
endif()
# Relocatable, unless a distribution says from the root on where libraries are. Of ${pcfiledir},
# pkg-config itself escapes blanks.
foreach(folder IN ITEMS LIBDIR INCLUDEDIR DATADIR)
  string(REPLACE " " "\\ " lk_pc_${folder} "${CMAKE_INSTALL_${folder}}")
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    string(PREPEND lk_pc_${folder} "\${prefix}/")
  endif()
endforeach()
string(REPLACE " " "\\ " lk_pc_prefix "${CMAKE_INSTALL_PREFIX}")
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH lk_pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" lk_pc_prefix "${lk_pc_prefix}")
  string(PREPEND lk_pc_prefix "\${pcfiledir}/")
endif()
configure_file(c/cmake/latchkey.pc.in latchkey.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/latchkey.pc" COMPONENT dev
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
