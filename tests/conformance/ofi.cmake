# SPDX-License-Identifier: Apache-2.0
ccom_add_test(
  NAME conformance_ofi
  SOURCES ofi_test.cc ../transport_ofi/rough_endpoint.cc ${conformance_suite}
  LINKS ofi base PkgConfig::LIBFABRIC
  LABELS transport
  TIMEOUT 300)
