# SPDX-License-Identifier: Apache-2.0
ccom_add_test(NAME conformance_shm SOURCES shm_test.cc LINKS conformance_suite shm base LABELS transport waits)
