// SPDX-License-Identifier: Apache-2.0
//
// How much more memory this process may use before the out-of-memory killer acts: the minimum of the machine's
// MemAvailable and the limits of its control groups. fallocate() on a memfd checks neither.
#pragma once

#include <cstdint>
#include <string>

namespace ccom {

// A snapshot; UINT64_MAX if nothing can be read. `root` is prepended to /proc and /sys (for tests).
uint64_t available_memory_bytes(const std::string& root = "");

}  // namespace ccom
