# SPDX-License-Identifier: Apache-2.0
#
# Fails if libccom defines a function of one of ARCHIVES, which are for tools only, or has a function with a static
# object that is made at the first call: a child that is forked meanwhile would wait for it for ever (base/fork.h).

cmake_minimum_required(VERSION 3.24)

# Names of what a file defines. A library's hidden functions are local there (t), an archive's are not (T).
function(names_of file variable kinds)
  execute_process(COMMAND ${NM} --defined-only ${file} OUTPUT_VARIABLE out COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[0-9a-f]+ [${kinds}] _Z[^\n]+" lines "${out}")
  list(TRANSFORM lines REPLACE "^.* " "")
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()

names_of(${LIBRARY} inside "tT")
list(LENGTH inside count)
if(count LESS 500)
  message(STATUS "${LIBRARY} has ${count} names only: it was stripped, nothing to compare")
  return()
endif()
names_of(${LIBRARY} guarded "bBdDuVvWw")
list(FILTER guarded INCLUDE REGEX "^_ZGVZNK?4ccom")
if(guarded)
  message(FATAL_ERROR "${LIBRARY} has static objects in functions: ${guarded}")
endif()
string(REPLACE "," ";" ARCHIVES "${ARCHIVES}")
foreach(archive IN LISTS ARCHIVES)
  names_of(${archive} names "T")
  if(NOT names)
    message(FATAL_ERROR "no functions in ${archive}")
  endif()
  foreach(name IN LISTS names)
    if(name IN_LIST inside)
      message(FATAL_ERROR "${LIBRARY} defines ${name} of ${archive}")
    endif()
  endforeach()
endforeach()
