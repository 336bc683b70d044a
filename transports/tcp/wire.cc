// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/wire.h"

#include <algorithm>

namespace ccom::tcp {
namespace {

uint32_t crc_of(const FragmentHeader& header) {
  return crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(FragmentHeader, header_crc)), 0);
}

}  // namespace

void seal(FragmentHeader& header) { header.header_crc = crc_of(header); }

bool is_sealed(const FragmentHeader& header) {
  return header.magic == kFragmentMagic && header.header_crc == crc_of(header);
}

bool is_on_grid(const FragmentHeader& header, size_t grid) {
  if (header.size_bytes == 0) return header.offset_bytes == 0 && header.length_bytes == 0;
  return header.offset_bytes < header.size_bytes && header.offset_bytes % grid == 0 &&
         header.length_bytes == std::min<uint64_t>(grid, header.size_bytes - header.offset_bytes);
}

}  // namespace ccom::tcp
