# SPDX-License-Identifier: Apache-2.0
#
# How files are compiled: optimisation, precompiled headers, several files at once, ccache. CONTRIBUTING.md says how
# long a build takes.
option(CCOM_PCH "Precompile headers" ON)
option(CCOM_UNITY "Compile the files of a target in batches: half the time for all, more for one that changed" ON)
option(CCOM_CCACHE "Compile through ccache where it is installed" ON)

# CMake's -O3 costs build time. The kernels have a use of it, and rooms that every call passes through: an allreduce of
# 8 bytes takes a tenth less (IN_CALLS in CcomRooms.cmake).
add_compile_options($<$<CONFIG:Release>:-O1>)
# A foreign function's contraction of a*b+c would change bits between instruction sets.
add_compile_options(-ffp-contract=off)
# What __FILE__ says is the same in every clone, also for ccache.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
# And so is what debug information says. Targets that need it in every build have these options.
set(CCOM_DEBUG_OPTIONS -g -fdebug-prefix-map=${PROJECT_SOURCE_DIR}/=)
add_compile_options($<$<NOT:$<CONFIG:Release>>:-fdebug-prefix-map=${PROJECT_SOURCE_DIR}/=>)
# gcc 12 warns of std::string's own code (gcc bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>")
endif()

if(CCOM_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCOM_CCACHE_PROGRAM ccache)
  if(CCOM_CCACHE_PROGRAM)
    # Without the sloppiness ccache refuses precompiled headers. Clones share what is below their root.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCOM_CCACHE_PROGRAM})
    set(CMAKE_C_COMPILER_LAUNCHER ${CCOM_CCACHE_PROGRAM})
  endif()
endif()

# A target that does nothing but precompile headers, for others to use.
function(ccom_add_precompiled name)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cc CONTENT "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/${name}.cc)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

# ccom_precompile(TARGET [HEADERS <boost/asio/io_context.hpp> ...] [REUSE_FROM OTHER])
# The standard library's headers, precompiled once for all libraries; with HEADERS, which most files of the target
# include anyway, those too, for this target alone. Only headers of the system: ccache shares what is precompiled
# between clones, each of which has headers of the project elsewhere. Files include what they need: the tree builds with
# CCOM_PCH=OFF.
function(ccom_precompile target)
  cmake_parse_arguments(PCH "" "REUSE_FROM" "HEADERS" ${ARGN})
  if(NOT CCOM_PCH)
    return()
  endif()
  if(PCH_HEADERS)
    target_precompile_headers(${target} PRIVATE ${CCOM_STANDARD_HEADERS} ${PCH_HEADERS})
  elseif(PCH_REUSE_FROM)
    target_precompile_headers(${target} REUSE_FROM ${PCH_REUSE_FROM})
  else()
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)  # as the headers are compiled
    target_precompile_headers(${target} REUSE_FROM ccom_standard_headers)
  endif()
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
endfunction()

if(CCOM_PCH)
  set(CCOM_STANDARD_HEADERS
      <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <cstdio> <cstdlib>
      <cstring>
      <deque> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view>
      <thread>
      <unordered_map> <utility> <vector>)
  # For each level of optimisation: gcc 12 crashes where a file at -O3 uses headers precompiled at -O1, and gcc 14 does
  # not use those of another level.
  ccom_add_precompiled(ccom_standard_headers ${CCOM_STANDARD_HEADERS})
  ccom_add_precompiled(ccom_standard_headers_in_calls ${CCOM_STANDARD_HEADERS})
  target_compile_options(ccom_standard_headers_in_calls PRIVATE $<$<CONFIG:Release>:-O3>)
  set_target_properties(ccom_standard_headers ccom_standard_headers_in_calls PROPERTIES POSITION_INDEPENDENT_CODE ON)
endif()

# ccom_unite(TARGET [SIZE]): its files compile in batches (CCOM_UNITY), in the order in which they are listed: beside
# one another should stand those that include the same large headers. CMake leaves out files with compile options of
# their own.
function(ccom_unite target)
  set(size 16)
  if(ARGC GREATER 1)
    set(size ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${CCOM_UNITY} UNITY_BUILD_BATCH_SIZE ${size})
endfunction()
