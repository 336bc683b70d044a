# SPDX-License-Identifier: Apache-2.0
#
# Rooms: one static library each, linked to exactly the rooms that the map in docs/architecture.md allows.

# ccom_add_room(NAME plan SOURCES plan.cc ... DEPENDS base [LIBRARIES OpenSSL::Crypto ...] [PRECOMPILE <boost/asio.hpp> ...])
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
  ccom_precompile(ccom_${ROOM_NAME} HEADERS ${ROOM_PRECOMPILE})
  ccom_unite(ccom_${ROOM_NAME})
  if(ROOM_IN_CALLS)
    target_compile_options(ccom_${ROOM_NAME} PRIVATE $<$<CONFIG:Release>:-O3>)
  endif()
  if(ROOM_FOR_TOOLS)
    set_property(GLOBAL APPEND PROPERTY CCOM_TOOL_ROOMS ccom_${ROOM_NAME})
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY CCOM_ROOMS ccom_${ROOM_NAME})
  set_property(GLOBAL APPEND PROPERTY CCOM_LIBRARIES ${ROOM_LIBRARIES})
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

# ccom_compile_test(TARGET LINKS...): how tests are compiled.
function(ccom_compile_test target)
  ccom_link(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gmock GTest::gtest_main)
  ccom_precompile(${target} REUSE_FROM ccom_test_headers)
  ccom_unite(${target} 8)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# ccom_add_test_objects(NAME conformance_suite SOURCES test_job.cc ... LINKS base)
# What several tests are linked with, compiled once: they name it among their LINKS.
function(ccom_add_test_objects)
  cmake_parse_arguments(TEST "" "NAME" "SOURCES;LINKS" ${ARGN})
  add_library(${TEST_NAME} OBJECT ${TEST_SOURCES})
  ccom_compile_test(${TEST_NAME} ${TEST_LINKS})
endfunction()

# ccom_add_test(NAME plan SOURCES plan_test.cc ... LINKS plan [LABELS pure] [TIMEOUT 60])
# A GoogleTest program. LINKS are rooms without the ccom_ prefix, or other targets. Among the labels scripts/test knows pure, for
# tests of one thread, and waits, for tests that mostly wait: of those it runs more than there are processors side by side.
# ALONE: nothing runs beside it, because it measures what the process or the machine does.
function(ccom_add_test)
  cmake_parse_arguments(TEST "ALONE" "NAME;TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  # In an emulator, or with sanitizers, perhaps beside other work.
  if(CMAKE_CROSSCOMPILING OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    math(EXPR TEST_TIMEOUT "4 * ${TEST_TIMEOUT}")
  endif()
  add_executable(test_${TEST_NAME} ${TEST_SOURCES})
  ccom_compile_test(test_${TEST_NAME} ${TEST_LINKS})
  add_test(NAME ${TEST_NAME} COMMAND test_${TEST_NAME})
  # Whatever a test runs is proved first.
  set_tests_properties(${TEST_NAME} PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}" ENVIRONMENT CCOM_VERIFY=1)
  set_tests_properties(${TEST_NAME} PROPERTIES RUN_SERIAL ${TEST_ALONE})
  if("sanitize" IN_LIST TEST_LABELS)
    set_property(GLOBAL APPEND PROPERTY CCOM_SANITIZE_TESTS test_${TEST_NAME})
  endif()
endfunction()
