// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/wire.h"

#include <isa-l/crc.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ccom::tcp {
namespace {

// ISA-L's AVX-512 code leaves the upper halves of the vector registers in use, and all SSE code after it pays: a
// message of 1 KiB took twice as long.
#if defined(__x86_64__)
[[gnu::target("avx")]] void clear_upper_halves() { _mm256_zeroupper(); }
void leave_vector_code() {
  if (__builtin_cpu_supports("avx")) clear_upper_halves();
}
#else
void leave_vector_code() {}
#endif

uint32_t crc_of(const FragmentHeader& header) {
  return crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(FragmentHeader, header_crc)), 0);
}

}  // namespace

// ISA-L keeps the register as it is; the usual inversion before and after makes results chain.
uint32_t crc32c(ConstBytes bytes, uint32_t so_far) {
  uint32_t value = ~so_far;
  while (!bytes.empty()) {
    const size_t length = std::min(bytes.size(), size_t{1} << 30);
    // The library takes a pointer to non-const and only reads.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    value = crc32_iscsi(data, static_cast<int>(length), value);
    bytes = bytes.subspan(length);
  }
  leave_vector_code();
  return ~value;
}

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
