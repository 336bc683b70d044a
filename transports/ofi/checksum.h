// SPDX-License-Identifier: Apache-2.0
//
// CRC32C of a whole message, header and payload.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ccom::ofi {

// Sets the header's checksum field to zero and returns the checksum of the message as it then is.
uint32_t checksum_of(std::byte* message, size_t size_bytes);

}  // namespace ccom::ofi
