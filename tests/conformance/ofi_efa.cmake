# SPDX-License-Identifier: Apache-2.0
ccom_add_test(
  NAME conformance_ofi_efa
  SOURCES ofi_efa_test.cc ${efa_emulation}
  LINKS conformance_suite ofi base
  LABELS transport waits matrix
  TIMEOUT 300)
target_include_directories(test_conformance_ofi_efa SYSTEM PRIVATE ${LIBFABRIC_INCLUDE_DIRS})
