# SPDX-License-Identifier: Apache-2.0
#
# ccom-bench-waiting: what a waiting rank costs a computing one.
add_executable(ccom-bench-waiting ${CMAKE_CURRENT_LIST_DIR}/waiting.cc)
target_link_libraries(ccom-bench-waiting PRIVATE ccom_bench_parts ccom_command_line)
