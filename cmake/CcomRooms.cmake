# SPDX-License-Identifier: Apache-2.0
#
# Rooms: one static library each, linked to exactly the rooms that the map in docs/architecture.md allows.

# ccom_add_room(NAME plan SOURCES plan.cc ... DEPENDS base [LIBRARIES OpenSSL::Crypto ...]
#               [PRECOMPILE <boost/asio.hpp> ...])
# DEPENDS are rooms, LIBRARIES third parties, PRECOMPILE headers besides the standard library's. FOR_TOOLS: tools and
# tests link it, libccom does not contain it. IN_CALLS: every call passes through it, so it is compiled for speed.
function(ccom_add_room)
  cmake_parse_arguments(ROOM "FOR_TOOLS;IN_CALLS" "NAME" "SOURCES;DEPENDS;LIBRARIES;PRECOMPILE" ${ARGN})
  add_library(ccom_${ROOM_NAME} STATIC ${ROOM_SOURCES})
  add_library(ccom::${ROOM_NAME} ALIAS ccom_${ROOM_NAME})
  target_compile_features(ccom_${ROOM_NAME} PUBLIC cxx_std_20)
  target_include_directories(ccom_${ROOM_NAME} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  set_target_properties(ccom_${ROOM_NAME} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                                     VISIBILITY_INLINES_HIDDEN ON)
  foreach(dependency IN LISTS ROOM_DEPENDS)
    target_link_libraries(ccom_${ROOM_NAME} PUBLIC ccom_${dependency})
  endforeach()
  target_link_libraries(ccom_${ROOM_NAME} PRIVATE ${ROOM_LIBRARIES})
  set(headers ccom_standard_headers)
  if(ROOM_IN_CALLS)
    target_compile_options(ccom_${ROOM_NAME} PRIVATE $<$<CONFIG:Release>:-O3>)
    set(headers ccom_standard_headers_in_calls)
  endif()
  ccom_precompile(ccom_${ROOM_NAME} HEADERS ${ROOM_PRECOMPILE} REUSE_FROM ${headers})
  ccom_unite(ccom_${ROOM_NAME})
  if(ROOM_FOR_TOOLS)
    set_property(GLOBAL APPEND PROPERTY CCOM_TOOL_ROOMS ccom_${ROOM_NAME})
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY CCOM_ROOMS ccom_${ROOM_NAME})
  set_property(GLOBAL APPEND PROPERTY CCOM_LIBRARIES ${ROOM_LIBRARIES})
endfunction()

# ccom_add_protocol(setup exchanges.proto [GRPC]): what protoc makes of a room's messages, and of its services, lies in
# generated/ of the build folder, which is the room's own to include.
function(ccom_add_protocol room file)
  set(root ${PROJECT_BINARY_DIR}/generated)
  cmake_path(GET file STEM name)
  set(made ${root}/${room}/${name}.pb.cc ${root}/${room}/${name}.pb.h)
  set(services "")
  if("GRPC" IN_LIST ARGN)
    list(APPEND made ${root}/${room}/${name}.grpc.pb.cc ${root}/${room}/${name}.grpc.pb.h)
    set(services --grpc_out=${root} --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
  endif()
  add_custom_command(
    OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${root}
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/src --cpp_out=${root} ${services} ${room}/${file}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${PROJECT_SOURCE_DIR}/src/control/control.proto
    COMMENT "Generating ${room}/${name}.pb"
    VERBATIM)
  target_sources(ccom_${room} PRIVATE ${made})
  target_include_directories(ccom_${room} SYSTEM PRIVATE ${root})
  set_source_files_properties(${made} PROPERTIES COMPILE_OPTIONS -w)
  add_custom_target(generated_${room} DEPENDS ${made})
  add_dependencies(generated_sources generated_${room})
endfunction()

# ccom_link(TARGET LINKS...): rooms without the ccom_ prefix, or other targets.
function(ccom_link target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  foreach(link IN LISTS ARGN)
    if(TARGET ccom_${link})
      target_link_libraries(${target} PRIVATE ccom_${link})
    else()
      target_link_libraries(${target} PRIVATE ${link})
    endif()
  endforeach()
endfunction()

# ccom_compile_test(TARGET LINKS...): how tests are compiled. Not optimised: what they test is, and their own
# optimisation costs more than it saves.
function(ccom_compile_test target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  target_link_libraries(${target} PRIVATE ccom_test_harness)
  ccom_link(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gmock GTest::gtest_main)
  ccom_precompile(${target} REUSE_FROM ccom_test_headers)
  ccom_unite(${target} 8)
endfunction()

# ccom_add_test_objects(NAME conformance_suite SOURCES test_job.cc ... LINKS base)
# What several tests are linked with, compiled once: they name it among their LINKS.
function(ccom_add_test_objects)
  cmake_parse_arguments(TEST "" "NAME" "SOURCES;LINKS" ${ARGN})
  add_library(${TEST_NAME} OBJECT ${TEST_SOURCES})
  ccom_compile_test(${TEST_NAME} ${TEST_LINKS})
endfunction()

# What ctest is told of a test, from the caller's TEST_... variables: TEST_PROPERTIES. Every test finds CCOM_SOURCE_DIR
# and CCOM_BINARY_DIR in its environment, and in CCOM_TEST_PROGRAMS the paths of its PROGRAMS, with colons between them.
macro(ccom_describe_test)
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  # In an emulator, or with sanitizers, perhaps beside other work.
  if(CMAKE_CROSSCOMPILING OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    math(EXPR TEST_TIMEOUT "4 * ${TEST_TIMEOUT}")
  endif()
  list(TRANSFORM TEST_PROGRAMS REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE program_files)
  list(JOIN program_files ":" program_paths)
  set(required_files ${program_files})
  foreach(file IN LISTS TEST_DATA)
    get_filename_component(file ${file} ABSOLUTE)
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "${TEST_NAME}: there is no ${file}")
    endif()
    list(APPEND required_files ${file})
  endforeach()
  # The runner starts twice as many processors' worth of cases: those that mostly wait run beside each other.
  set(processors 2)
  if(TEST_LABELS MATCHES "waits|matrix")
    set(processors 1)
  endif()
  set(TEST_PROPERTIES
      "PROCESSORS ${processors} TIMEOUT ${TEST_TIMEOUT} RUN_SERIAL ${TEST_ALONE} LABELS \"${TEST_LABELS}\" \
REQUIRED_FILES \"${required_files}\" \
ENVIRONMENT \"CCOM_TUNING_SAVE=off;CCOM_SOURCE_DIR=${PROJECT_SOURCE_DIR};CCOM_BINARY_DIR=${PROJECT_BINARY_DIR};\
CCOM_TEST_PROGRAMS=${program_paths};CCOM_TEST_TIMEOUT=${TEST_TIMEOUT};${TEST_ENVIRONMENT}\"")
endmacro()

# ccom_add_test(NAME plan SOURCES plan_test.cc ... LINKS plan [LABELS pure] [TIMEOUT 60] [PROGRAMS rank_program]
#               [DATA folder])
# A GoogleTest program, whose cases ctest knows one by one: plan.<Suite>.<Case>. LINKS are rooms without the ccom_
# prefix, or other targets. PROGRAMS are targets that it starts (program("rank_program") in tests/harness/paths.h), DATA
# files and folders that it reads. Among the labels scripts/test knows pure, for tests of one thread, and waits, for
# tests that mostly wait: of those it runs more than there are processors side by side. ALONE: nothing runs beside it,
# because it measures what the process or the machine does. TIMEOUT is for one case.
function(ccom_add_test)
  cmake_parse_arguments(TEST "ALONE" "NAME;TIMEOUT" "SOURCES;LINKS;LABELS;PROGRAMS;DATA" ${ARGN})
  add_executable(test_${TEST_NAME} ${TEST_SOURCES})
  ccom_compile_test(test_${TEST_NAME} ${TEST_LINKS})
  ccom_discover_cases(${ARGN})
endfunction()

# ccom_discover_cases(NAME models [LABELS pure] ...): the same for a target test_models that there is already.
function(ccom_discover_cases)
  cmake_parse_arguments(TEST "ALONE" "NAME;TIMEOUT" "SOURCES;LINKS;LABELS;PROGRAMS;DATA" ${ARGN})
  set(target test_${TEST_NAME})
  if(TEST_PROGRAMS)
    add_dependencies(${target} ${TEST_PROGRAMS})
  endif()
  gtest_discover_tests(${target} TEST_PREFIX "${TEST_NAME}." TEST_LIST cases NO_PRETTY_TYPES NO_PRETTY_VALUES
                       DISCOVERY_TIMEOUT 300)
  # Included after what has been discovered, because gtest_discover_tests loses the semicolons of lists.
  set(TEST_ENVIRONMENT CCOM_VERIFY=1)  # whatever a test runs is proved first
  ccom_describe_test()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_properties.cmake)
  file(GENERATE OUTPUT ${file} CONTENT "if(NOT cases)
  set(cases ${target}_NOT_BUILT)
endif()
set_tests_properties(\${cases} PROPERTIES ${TEST_PROPERTIES})
unset(cases)
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()

# ccom_add_script_test(NAME sim_replay COMMAND sh replay_test.sh $<TARGET_FILE:ccom-sim> [LABELS processes] [TIMEOUT 60]
#                      [PROGRAMS rank_program] [DATA folder] [ENVIRONMENT NAME=value ...] [ALONE])
# Any other test. It depends on its PROGRAMS and DATA, and on what its command names; a file beside CMakeLists.txt needs
# no folder. Exit code 77 says that it cannot run here.
function(ccom_add_script_test)
  cmake_parse_arguments(TEST "ALONE" "NAME;TIMEOUT" "COMMAND;LABELS;PROGRAMS;DATA;ENVIRONMENT" ${ARGN})
  if(TEST_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${TEST_NAME}: what is ${TEST_UNPARSED_ARGUMENTS}?")
  endif()
  set(command "")
  foreach(word IN LISTS TEST_COMMAND)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${word} AND NOT IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${word})
      set(word ${CMAKE_CURRENT_SOURCE_DIR}/${word})
    endif()
    if(IS_ABSOLUTE "${word}" AND EXISTS ${word} AND NOT IS_DIRECTORY ${word})
      list(APPEND TEST_DATA ${word})
    endif()
    list(APPEND command "${word}")
  endforeach()
  string(REGEX MATCHALL "\\$<TARGET_FILE:[^>]+" named "${TEST_COMMAND} ${TEST_ENVIRONMENT}")
  list(TRANSFORM named REPLACE ".*:" "")
  list(APPEND TEST_PROGRAMS ${named})
  list(REMOVE_DUPLICATES TEST_PROGRAMS)
  add_test(NAME ${TEST_NAME} COMMAND ${command})
  ccom_describe_test()
  cmake_language(EVAL CODE "set_tests_properties(${TEST_NAME} PROPERTIES SKIP_RETURN_CODE 77 ${TEST_PROPERTIES})")
endfunction()

# ccom_add_python_test(NAME jobs_status FILE status_test.py [EXCEPT REGEX] [what ccom_add_script_test takes])
# Cases of unittest (tests/harness/case.py) that ctest knows one by one: jobs_status.<Class>.<test_method>, but for
# those whose names match EXCEPT.
function(ccom_add_python_test)
  cmake_parse_arguments(PYTHON "ALONE" "NAME;FILE;EXCEPT;TIMEOUT" "DATA;PROGRAMS;LABELS;ENVIRONMENT" ${ARGN})
  set(options "")
  foreach(option TIMEOUT DATA PROGRAMS LABELS ENVIRONMENT)
    if(PYTHON_${option})
      list(APPEND options ${option} ${PYTHON_${option}})
    endif()
  endforeach()
  if(PYTHON_ALONE)
    list(APPEND options ALONE)
  endif()
  set(runner ${PROJECT_SOURCE_DIR}/tests/harness/case.py)
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/${PYTHON_FILE})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${runner} ${file})
  execute_process(COMMAND ${Python3_EXECUTABLE} ${runner} --list ${file} OUTPUT_VARIABLE names
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT names)
    message(FATAL_ERROR "${PYTHON_NAME}: ${PYTHON_FILE} has no cases")
  endif()
  string(REPLACE "\n" ";" names "${names}")
  if(PYTHON_EXCEPT)
    list(FILTER names EXCLUDE REGEX "${PYTHON_EXCEPT}")
  endif()
  foreach(name IN LISTS names)
    ccom_add_script_test(NAME ${PYTHON_NAME}.${name} COMMAND Python3::Interpreter ${runner} ${file} ${name} ${options})
  endforeach()
endfunction()
