# SPDX-License-Identifier: Apache-2.0
#
# Runs every example of docs/simulator.md as written there: lines of "    ccom-sim ARGUMENTS", two spaces, an
# explanation.
file(STRINGS ${DOCUMENT} lines REGEX "^    ccom-sim ")
list(LENGTH lines count)
if(count LESS 10)
  message(FATAL_ERROR "${DOCUMENT} has ${count} examples")
endif()
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
file(COPY ${EXAMPLES} DESTINATION ${FOLDER}/examples)
execute_process(COMMAND ${TOPO} ring:4 --json OUTPUT_FILE ${FOLDER}/fabric.json COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(tools ${TOOL} DIRECTORY)
foreach(line IN LISTS lines)
  string(STRIP "${line}" line)
  string(REGEX REPLACE "   *.*$" "" command "${line}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env "PATH=${tools}:$ENV{PATH}" sh -c "${command}"
                  WORKING_DIRECTORY ${FOLDER}
                  RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err TIMEOUT 100)
  if(NOT result EQUAL 0 OR out STREQUAL "")
    message(FATAL_ERROR "${command}: ${result}\n${out}${err}")
  endif()
endforeach()

# What it does not know it names, with what there is.
execute_process(COMMAND ${TOOL} host:4 alreduce -b 8 RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
if(result EQUAL 0 OR NOT err MATCHES "there is no collective \"alreduce\"; there are .*allreduce.*alltoall")
  message(FATAL_ERROR "an unknown collective: ${result}\n${out}${err}")
endif()
