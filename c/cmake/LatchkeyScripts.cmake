# SPDX-License-Identifier: Apache-2.0
# latchkey_add_scripts(TARGET FOLDER [HEADER NAME])
#
# Typed calls of the scripts of a folder, for a target: `latchkey bind c` writes NAME (calls.h), anew
# whenever a script or contract there changes, or the program latchkey, which it needs. The target includes it.
function(latchkey_add_scripts target folder)
  cmake_parse_arguments(PARSE_ARGV 2 LK "" "HEADER" "")
  if(LK_UNPARSED_ARGUMENTS OR LK_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "latchkey_add_scripts(TARGET FOLDER [HEADER NAME]): what is ${LK_UNPARSED_ARGUMENTS}?")
  endif()
  if(NOT LK_HEADER)
    set(LK_HEADER calls.h)
  endif()
  find_program(LATCHKEY_EXECUTABLE latchkey HINTS "${LATCHKEY_PROGRAM_DIR}" REQUIRED)
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
  if(NOT IS_DIRECTORY "${folder}")
    message(FATAL_ERROR "latchkey_add_scripts: ${folder} is not a folder")
  endif()
  file(GLOB_RECURSE scripts CONFIGURE_DEPENDS "${folder}/*.lua" "${folder}/*.contract")
  set(written "${CMAKE_CURRENT_BINARY_DIR}/${target}-scripts")
  file(MAKE_DIRECTORY "${written}")
  # The times of files do not tell that one has gone, or that one has come which is older.
  file(CONFIGURE OUTPUT "${written}/scripts.list" CONTENT "${scripts}" @ONLY)
  add_custom_command(OUTPUT "${written}/${LK_HEADER}"
    COMMAND "${LATCHKEY_EXECUTABLE}" bind c --dir "${folder}" -o "${written}/${LK_HEADER}"
    DEPENDS ${scripts} "${written}/scripts.list" "${LATCHKEY_EXECUTABLE}" VERBATIM)
  target_sources("${target}" PRIVATE "${written}/${LK_HEADER}")
  target_include_directories("${target}" PRIVATE "${written}")
endfunction()
