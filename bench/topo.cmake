# SPDX-License-Identifier: Apache-2.0
#
# ccom-topo: prints this machine or a fabric.
add_executable(ccom-topo ${CMAKE_CURRENT_LIST_DIR}/ccom_topo.cc)
target_link_libraries(ccom-topo PRIVATE ccom_topology CLI11::CLI11)
install(TARGETS ccom-topo RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
