# SPDX-License-Identifier: Apache-2.0
#
# ccom-bench-kernels: the reductions of one core, beside memcpy.
add_executable(ccom-bench-kernels ${CMAKE_CURRENT_LIST_DIR}/kernels.cc)
target_link_libraries(ccom-bench-kernels PRIVATE ccom_kernels benchmark::benchmark)
