// SPDX-License-Identifier: Apache-2.0
//
// The page of memory of the running kernel: 4 KiB on x86-64; 4, 16 or 64 KiB on arm64.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace ccom {

// Of x86-64, and of arm64 with pages of 4 KiB.
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

inline size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace ccom
