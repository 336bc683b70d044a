# SPDX-License-Identifier: Apache-2.0
ccom_add_test(NAME conformance_tcp SOURCES tcp_test.cc ${conformance_suite} LINKS tcp base LABELS transport)
