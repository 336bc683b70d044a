// SPDX-License-Identifier: Apache-2.0
//
// The collectives as methods. Results are concatenated along the first dimension; what is given as `out` may have any
// shape of as many elements.
#pragma once

#include <nanobind/nanobind.h>

namespace ccom_core {

class Communicator;

void add_collectives(nanobind::class_<Communicator>& communicator);
void add_collectives_of_parts(nanobind::class_<Communicator>& communicator);
void add_messages(nanobind::class_<Communicator>& communicator);

}  // namespace ccom_core
