// SPDX-License-Identifier: Apache-2.0
//
// How many descriptors the process may have: 1,024 is a common soft limit, which hundreds of groups across hosts
// exceed.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace ccom {

// Raises the soft limit of open files, as far as the hard one allows, if `needed` more would exceed it; a line of the
// log says so. An error that names the limit where there are not that many. Thread-safe; children that the process
// starts from now on inherit the limit.
Status make_room_for_descriptors(size_t needed);

// Of those that Descriptors own or have owned. As many or fewer are in use: the kernel gives out the smallest number
// that is free.
int greatest_descriptor();

}  // namespace ccom
