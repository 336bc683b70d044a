// SPDX-License-Identifier: Apache-2.0
//
// CRC32C of what travels over networks (ISA-L).
#pragma once

#include "base/types.h"

namespace ccom {

// `so_far` is the result for the bytes before these, 0 at the start.
uint32_t crc32c(ConstBytes bytes, uint32_t so_far);

}  // namespace ccom
