# SPDX-License-Identifier: Apache-2.0
ccom_add_test(
  NAME conformance_ofi
  SOURCES ofi_test.cc ../transport_ofi/rough_endpoint.cc
  LINKS conformance_suite ofi base
  LABELS transport waits matrix
  TIMEOUT 300)
target_include_directories(test_conformance_ofi SYSTEM PRIVATE ${LIBFABRIC_INCLUDE_DIRS})
