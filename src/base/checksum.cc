// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ccom {
namespace {

// ISA-L's AVX-512 code leaves the upper halves of the vector registers dirty, which slows all later SSE code: a 1 KiB
// message took twice as long.
#if defined(__x86_64__)
[[gnu::target("avx")]] void clear_upper_halves() { _mm256_zeroupper(); }
void leave_vector_code() {
  if (__builtin_cpu_supports("avx")) clear_upper_halves();
}
#else
void leave_vector_code() {}
#endif

}  // namespace

// ISA-L does not invert the register; inverting before and after makes results composable.
uint32_t crc32c(ConstBytes bytes, uint32_t so_far) {
  uint32_t value = ~so_far;
  while (!bytes.empty()) {
    const size_t length = std::min(bytes.size(), size_t{1} << 30);
    // The parameter lacks const, but the library only reads.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    value = crc32_iscsi(data, static_cast<int>(length), value);
    bytes = bytes.subspan(length);
  }
  leave_vector_code();
  return ~value;
}

}  // namespace ccom
