# SPDX-License-Identifier: Apache-2.0
# A sabotage is a patch of one file. What is patched is a copy, and a patch that does not fit exactly ends
# the build.
find_program(LK_PATCH patch)

# lk_sabotaged_copy(PATCH SCRIPTS OUT): OUT is the patched copy that a rule of this directory makes: of a
# script into the folder SCRIPTS, for --scripts; of a C file into the binary directory.
function(lk_sabotaged_copy patch scripts out)
  cmake_path(GET patch STEM name)
  file(STRINGS "${patch}" path LIMIT_COUNT 1 REGEX "^\\+\\+\\+ ")
  string(REGEX REPLACE "^\\+\\+\\+ b/" "" path "${path}")
  cmake_path(GET path FILENAME file)
  if(path MATCHES "^scripts/(.*)/")
    set(copy "${scripts}/${name}/${CMAKE_MATCH_1}/${file}")
  else()
    set(copy "${CMAKE_CURRENT_BINARY_DIR}/${name}/${file}")
  endif()
  cmake_path(GET copy PARENT_PATH folder)
  add_custom_command(OUTPUT "${copy}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
    COMMAND "${LK_PATCH}" --quiet --fuzz=0 --output=${copy} "${PROJECT_SOURCE_DIR}/${path}" "${patch}"
    DEPENDS "${PROJECT_SOURCE_DIR}/${path}" "${patch}"
    COMMENT "Sabotaging ${path}: ${name}"
    VERBATIM)
  set(${out} "${copy}" PARENT_SCOPE)
endfunction()
