# SPDX-License-Identifier: Apache-2.0
#
# The library and the programs of the Python wheel, in BUILD/wheel: objects of the ordinary build, linked once more with
# gRPC, protobuf, absl, re2, c-ares, OpenSSL and zlib inside, hidden. CCOM_WHEEL_ARCHIVES is the folder in which
# scripts/build-archives has made those archives that Debian compiles for programs only; the others are Debian's.
# docs/decisions/0016-wheels.md
set(CCOM_WHEEL_ARCHIVES "" CACHE
    PATH "Folder of archives made by scripts/build-archives; adds the target ccom_wheel_files")
if(NOT CCOM_WHEEL_ARCHIVES)
  return()
endif()

file(GLOB own_archives CONFIGURE_DEPENDS ${CCOM_WHEEL_ARCHIVES}/*.a)
set(inside -Wl,--start-group ${own_archives})
foreach(name grpc++ grpc gpr upb address_sorting cares ssl crypto z)
  find_library(CCOM_WHEEL_${name} lib${name}.a REQUIRED)
  mark_as_advanced(CCOM_WHEEL_${name})
  list(APPEND inside ${CCOM_WHEEL_${name}})
endforeach()
list(APPEND inside -Wl,--end-group PkgConfig::ISAL hwy::hwy Threads::Threads ${CMAKE_DL_LIBS} m)
set(link_options -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,-O1 -s)
set(folder ${PROJECT_BINARY_DIR}/wheel)

get_property(rooms GLOBAL PROPERTY CCOM_ROOMS)
get_property(tool_rooms GLOBAL PROPERTY CCOM_TOOL_ROOMS)
set(objects)
foreach(room IN LISTS rooms)
  list(APPEND objects $<TARGET_OBJECTS:${room}>)
endforeach()
add_library(ccom_wheel SHARED EXCLUDE_FROM_ALL ${objects})
target_link_options(ccom_wheel PRIVATE ${link_options} -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/api/ccom.map
                    -Wl,-z,defs -Wl,--as-needed)
target_link_libraries(ccom_wheel PRIVATE ${inside})
set_target_properties(
  ccom_wheel PROPERTIES OUTPUT_NAME ccom LINKER_LANGUAGE CXX SOVERSION ${CCOM_SOVERSION}
                        LIBRARY_OUTPUT_DIRECTORY ${folder}/lib
                        LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/api/ccom.map BUILD_WITH_INSTALL_RPATH ON
                        INSTALL_RPATH $ORIGIN)
add_custom_target(ccom_wheel_files DEPENDS ccom_wheel)

# ccom_wheel_program(NAME PARTS...): the program with the same objects, and archives of its parts and rooms. One without
# rooms knows ccom by its API and takes libccom.so.
function(ccom_wheel_program name)
  set(archives)
  foreach(part IN LISTS ARGN)
    list(APPEND archives $<TARGET_FILE:${part}>)
  endforeach()
  string(REPLACE - _ target ${name}_wheel)
  add_executable(${target} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${name}>)
  add_dependencies(${target} ${ARGN})
  target_link_options(${target} PRIVATE ${link_options} -Wl,--as-needed)
  if(ccom_api IN_LIST ARGN)
    target_link_libraries(${target} PRIVATE -Wl,--start-group ${archives} -Wl,--end-group ${inside})
  else()
    target_link_libraries(${target} PRIVATE ${archives} ccom_wheel Threads::Threads)
  endif()
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
                        RUNTIME_OUTPUT_DIRECTORY ${folder}/bin
                        BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH $ORIGIN/../lib)
  add_dependencies(ccom_wheel_files ${target})
endfunction()
ccom_wheel_program(ccom-bench ccom_bench_parts ccom_command_line ccom_launch)
ccom_wheel_program(ccom-doctor ccom_doctor_parts ccom_launch ccom_command_line ${rooms})
ccom_wheel_program(ccom-run ccom_launch ccom_command_line)
ccom_wheel_program(ccom-sim ccom_sim_parts ccom_command_line ${tool_rooms} ${rooms})
ccom_wheel_program(ccom-status ccom_jobs_parts ccom_command_line ${rooms})
ccom_wheel_program(ccom-top ccom_top_parts ccom_jobs_parts ccom_command_line ${rooms})
foreach(name ncursesw tinfo)
  find_library(CCOM_WHEEL_${name} lib${name}.a REQUIRED)
  mark_as_advanced(CCOM_WHEEL_${name})
  target_link_libraries(ccom_top_wheel PRIVATE ${CCOM_WHEEL_${name}})
endforeach()
ccom_wheel_program(ccom-topo ccom_topo_parts ccom_command_line ${rooms})
ccom_wheel_program(ccom-trace ccom_trace_parts ccom_command_line ${tool_rooms} ${rooms})
