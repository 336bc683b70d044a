// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/checksum.h"

#include <cstring>

#include "base/checksum.h"
#include "transports/ofi/wire.h"

namespace ccom::ofi {

uint32_t checksum_of(std::byte* message, size_t size_bytes) {
  std::memset(message + offsetof(Header, checksum), 0, sizeof(Header::checksum));
  return crc32c({message, size_bytes}, 0);
}

}  // namespace ccom::ofi
