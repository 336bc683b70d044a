# SPDX-License-Identifier: Apache-2.0
#
# Installed programs, each with a man page from its --help (help2man) and completions for bash, zsh and fish (its
# --completion). They are written whenever the program is linked, so whoever has built it can install them. Programs of
# another machine run by CMAKE_CROSSCOMPILING_EMULATOR; without one there are neither.
find_program(CCOM_HELP2MAN help2man)
set(CCOM_ZSH_COMPLETIONS ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE
    STRING "Where completions for zsh are installed")

set(ccom_programs_run ON)
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(ccom_programs_run OFF)
elseif(NOT CCOM_HELP2MAN AND CCOM_BENCH)
  message(STATUS "help2man is not installed: no man pages")
endif()

# ccom_install_program(ccom-bench "measure and verify collectives")
# Compiles the program's files in batches, and installs it with its completions and its man page. The purpose stands in
# the page's first line; docs/man/ccom-bench.h2m holds what --help does not say.
function(ccom_install_program program purpose)
  ccom_unite(${program})
  install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(NOT ccom_programs_run)
    return()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/programs)
  set(runner ${folder}/${program})
  set(emulator "$<JOIN:$<TARGET_PROPERTY:${program},CROSSCOMPILING_EMULATOR>, >")
  file(GENERATE OUTPUT ${runner} CONTENT "#!/bin/sh\nexec ${emulator} $<TARGET_FILE:${program}> \"$@\"\n"
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  add_custom_command(
    TARGET ${program} POST_BUILD
    COMMAND ${runner} --completion bash > ${program}.bash
    COMMAND ${runner} --completion zsh > _${program}
    COMMAND ${runner} --completion fish > ${program}.fish
    WORKING_DIRECTORY ${folder} VERBATIM)
  install(FILES ${folder}/${program}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          RENAME ${program})
  install(FILES ${folder}/_${program} DESTINATION ${CCOM_ZSH_COMPLETIONS})
  install(FILES ${folder}/${program}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  if(NOT CCOM_HELP2MAN)
    return()
  endif()
  set(more ${PROJECT_SOURCE_DIR}/docs/man/${program}.h2m)
  set_property(TARGET ${program} APPEND PROPERTY LINK_DEPENDS ${more})
  add_custom_command(
    TARGET ${program} POST_BUILD
    COMMAND ${CCOM_HELP2MAN} --no-info --name=${purpose} --include=${more} --output=${folder}/${program}.1 ${runner}
    VERBATIM)
  install(FILES ${folder}/${program}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endfunction()
