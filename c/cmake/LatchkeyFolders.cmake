# SPDX-License-Identifier: Apache-2.0
# The folders that are installed into. An installation makes those that are missing, with the umask of whoever
# installs, also under CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS. Under 077 others could not use what is in them,
# so they are made here, before everything else. Folders that are there keep their modes.

# lk_installed(OUT FOLDER): where FOLDER is when a script of the installation asks.
function(lk_installed out folder)
  if(NOT IS_ABSOLUTE "${folder}")
    string(PREPEND folder "\${CMAKE_INSTALL_PREFIX}/")
  endif()
  set(${out} "\$ENV{DESTDIR}${folder}" PARENT_SCOPE)
endfunction()

set(lk_folders_lib "${CMAKE_INSTALL_LIBDIR}" "${CMAKE_INSTALL_DOCDIR}")
set(lk_folders_dev "${CMAKE_INSTALL_INCLUDEDIR}" "${CMAKE_INSTALL_LIBDIR}/cmake/latchkey"
  "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
set(lk_folders_program "${CMAKE_INSTALL_BINDIR}" "${LK_SHARE_DIR}/tools")
set(lk_folders_scripts "${LK_SHARE_DIR}")
if(NOT CMAKE_CROSSCOMPILING)
  list(APPEND lk_folders_dev "${CMAKE_INSTALL_MANDIR}")
  list(APPEND lk_folders_program "${CMAKE_INSTALL_MANDIR}" "${CMAKE_INSTALL_DOCDIR}"
    "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
    "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()

# Packages have parts of them each (LatchkeyPackages.cmake).
if(NOT PROJECT_IS_TOP_LEVEL OR LK_PACKAGES)
  return()
endif()
install(CODE [[
  function(lk_make_folder folder)
    if(EXISTS "${folder}")
      return()
    endif()
    cmake_path(GET folder PARENT_PATH above)
    lk_make_folder("${above}")
    file(MAKE_DIRECTORY "${folder}")
    file(CHMOD "${folder}" DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
      GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endfunction()]] ALL_COMPONENTS)
foreach(component IN ITEMS lib dev program scripts)
  foreach(folder IN LISTS lk_folders_${component})
    lk_installed(folder "${folder}")
    install(CODE "
  set(folder \"${folder}\")
  cmake_path(ABSOLUTE_PATH folder NORMALIZE)
  lk_make_folder(\"\${folder}\")" COMPONENT ${component})
  endforeach()
endforeach()
