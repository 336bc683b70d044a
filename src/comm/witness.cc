// SPDX-License-Identifier: Apache-2.0
#include "comm/witness.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checksum.h"
#include "plan/fingerprint.h"

namespace ccom {
namespace {

constexpr size_t kPieces = 32, kPieceBytes = 64;

}  // namespace

uint64_t digest_of(ConstBytes data, uint64_t call, uint64_t before) {
  std::array<std::byte, kPieces * kPieceBytes> sample;
  ConstBytes digested = data;
  if (data.size() > sample.size()) {
    // One of the lines of each of so many stretches; the last line may overlap the one before.
    const size_t lines = (data.size() + kPieceBytes - 1) / kPieceBytes;
    for (size_t i = 0; i < kPieces; ++i) {
      const size_t first = i * lines / kPieces, end = (i + 1) * lines / kPieces;
      const size_t line = first + mix(call * kPieces + i) % (end - first);
      std::memcpy(&sample[i * kPieceBytes], &data[std::min(line * kPieceBytes, data.size() - kPieceBytes)],
                  kPieceBytes);
    }
    digested = sample;
  }
  const uint64_t all = mix(mix(before) + (static_cast<uint64_t>(crc32c(digested, 0)) << 32 ^ data.size()));
  return all == 0 ? 1 : all;
}

}  // namespace ccom
