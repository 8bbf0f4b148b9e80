# SPDX-License-Identifier: Apache-2.0
# Man pages and completions for bash, zsh and fish, from the commands' own parsers. They are made by
# LuaJIT with the library loaded, which cannot be done with a library that needs a sanitizer, or is another
# processor's.
if(NOT TARGET latchkey_program OR LK_SANITIZE)
  return()
endif()
if(CMAKE_CROSSCOMPILING)
  message(STATUS "Man pages and completions are not made: the program does not run here")
  return()
endif()

set(lk_manual "${PROJECT_BINARY_DIR}/manual")
set(lk_manual_stamp "${lk_manual}/stamp")
file(GLOB_RECURSE lk_tools CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/*.lua"
  "${PROJECT_SOURCE_DIR}/c/include/latchkey/*.h" "${PROJECT_SOURCE_DIR}/docs/*.md")
string(TIMESTAMP lk_date "%B %d, %Y" UTC)
add_custom_command(
  OUTPUT "${lk_manual_stamp}"
  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${lk_manual}"
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${lk_manual}"
  COMMAND "${CMAKE_COMMAND}" -E env "LATCHKEY_LIB=$<TARGET_FILE:latchkey_shared>"
    "${LK_LUAJIT}" tools/manual.lua --program "$<TARGET_FILE:latchkey_program>" --date "${lk_date}"
    --man "${lk_manual}/man1" --man3 "${lk_manual}/man3"
    --man7 "${lk_manual}/man7" --completion "${lk_manual}/completion"
    --markdown "${lk_manual}/commands"
  COMMAND "${CMAKE_COMMAND}" -E touch "${lk_manual_stamp}"
  DEPENDS latchkey_program latchkey_shared latchkey_cdef ${lk_tools}
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  COMMENT "Writing man pages and completions"
  VERBATIM)
add_custom_target(latchkey_manual ALL DEPENDS "${lk_manual_stamp}")

install(DIRECTORY "${lk_manual}/man1" "${lk_manual}/man7"
  DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT program)
install(DIRECTORY "${lk_manual}/man3" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT dev)
install(FILES "${lk_manual}/completion/bash/latchkey" COMPONENT program
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
# Debian's zsh looks for those of packages where no other does.
set(lk_zsh_dir "$<IF:$<BOOL:${LK_PACKAGES}>,vendor-completions,site-functions>")
install(FILES "${lk_manual}/completion/zsh/_latchkey" COMPONENT program
  DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/${lk_zsh_dir}")
install(FILES "${lk_manual}/completion/fish/latchkey.fish" COMPONENT program
  DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
