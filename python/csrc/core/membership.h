// SPDX-License-Identifier: Apache-2.0
//
// Starts of communicators, and what is known of their ranks.
#pragma once

#include <nanobind/nanobind.h>

namespace ccom_core {

class Communicator;

void add_starts(nanobind::module_& module);
void add_membership(nanobind::class_<Communicator>& communicator);
void add_queries(nanobind::module_& module, nanobind::class_<Communicator>& communicator);
void add_memory(nanobind::module_& module, nanobind::class_<Communicator>& communicator);

}  // namespace ccom_core
