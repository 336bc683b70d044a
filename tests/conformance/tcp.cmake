# SPDX-License-Identifier: Apache-2.0
ccom_add_test(NAME conformance_tcp SOURCES tcp_test.cc LINKS conformance_suite tcp base LABELS transport waits)
