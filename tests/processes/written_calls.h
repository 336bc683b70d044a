// SPDX-License-Identifier: Apache-2.0
//
// Collective calls as an argument of a program: "allreduce float32 sum count 1000, broadcast float32 count 8 root 2",
// as ccom's errors write them; "barrier".
#pragma once

#include <ccom/ccom.h>

#include <string>

namespace ccom {

// Makes them one after another, on buffers of its own, until one fails; the last result.
ccomResult_t make_calls(const std::string& calls, ccomComm_t comm);

}  // namespace ccom
