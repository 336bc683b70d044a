// SPDX-License-Identifier: Apache-2.0
//
// CRC32C for network payloads (ISA-L).
#pragma once

#include "base/types.h"

namespace ccom {

// `so_far`: the result for the preceding bytes, 0 at the start.
uint32_t crc32c(ConstBytes bytes, uint32_t so_far);

}  // namespace ccom
