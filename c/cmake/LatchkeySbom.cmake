# SPDX-License-Identifier: Apache-2.0
# What the library and the program are made of and linked with, as CycloneDX: NAME.cdx.json in sbom/, installed beside
# the documentation. It is read from what was linked, by tools/sbom.lua.
if(NOT TARGET latchkey_program OR LK_SANITIZE)
  return()
endif()
if(LK_HIREDIS_BUILT_IN)
  set(lk_sbom_hiredis --hiredis "${HIREDIS_VERSION}")
endif()
set(lk_sbom_dir "${PROJECT_BINARY_DIR}/sbom")
file(MAKE_DIRECTORY "${lk_sbom_dir}")

# lk_sbom(TARGET NAME TYPE COMPONENT PACKAGE OPTION...): PACKAGE is that of Debian.
function(lk_sbom target name type component package)
  set(file "${lk_sbom_dir}/${name}.cdx.json")
  add_custom_command(OUTPUT "${file}"
    COMMAND "${LK_LUAJIT}" tools/sbom.lua --file "$<TARGET_FILE:${target}>" --name "${name}" --type "${type}"
      --version "${PROJECT_VERSION}" --compiler "${CMAKE_C_COMPILER}" --objdump "${CMAKE_OBJDUMP}"
      --epoch "${lk_epoch}" --output "${file}" ${ARGN}
    DEPENDS ${target} "${PROJECT_SOURCE_DIR}/tools/sbom.lua"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    COMMENT "Listing what ${name} is linked with"
    VERBATIM)
  add_custom_target(latchkey_sbom_${component} ALL DEPENDS "${file}")
  if(LK_PACKAGES)
    set(folder "${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}")
  else()
    set(folder "${CMAKE_INSTALL_DOCDIR}")
  endif()
  install(FILES "${file}" DESTINATION "${folder}" COMPONENT ${component})
endfunction()
lk_sbom(latchkey_shared liblatchkey library lib liblatchkey0 --scripts scripts ${lk_sbom_hiredis})
lk_sbom(latchkey_program latchkey application program latchkey)
