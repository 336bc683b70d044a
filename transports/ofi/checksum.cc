// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/checksum.h"

#include <isa-l/crc.h>

#include <cstring>

#include "transports/ofi/wire.h"

namespace ccom::ofi {

uint32_t checksum_of(std::byte* message, size_t size_bytes) {
  std::memset(message + offsetof(Header, checksum), 0, sizeof(Header::checksum));
  return crc32_iscsi(reinterpret_cast<unsigned char*>(message), static_cast<int>(size_bytes), ~0u);
}

}  // namespace ccom::ofi
