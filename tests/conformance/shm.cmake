# SPDX-License-Identifier: Apache-2.0
ccom_add_test(NAME conformance_shm SOURCES shm_test.cc ${conformance_suite} LINKS shm base LABELS transport sanitize)
