// SPDX-License-Identifier: Apache-2.0
//
// Digests of results: any bit of short data counts, any bit of long data after one of the next calls.
#include "comm/witness.h"

#include <gtest/gtest.h>

#include <vector>

namespace ccom {
namespace {

uint64_t digest(const std::vector<std::byte>& data, uint64_t call) { return digest_of(data, call, 7); }

class Digests : public testing::TestWithParam<size_t> {};

TEST_P(Digests, SeeEveryBitOfShortDataAtOnceAndOfLongDataInTime) {
  const size_t bytes = GetParam();
  const uint64_t most_calls = bytes <= 2048 ? 1 : 200 * (bytes / 2048 + 1);
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 37);
  for (size_t at = 0; at < bytes; at += bytes < 5000 ? 1 : 997) {
    std::vector<std::byte> other = data;
    other[at] ^= std::byte{1} << at % 8;
    uint64_t call = 0;
    while (call < most_calls && digest(data, call) == digest(other, call)) ++call;
    ASSERT_LT(call, most_calls) << "byte " << at << " of " << bytes;
  }
}

TEST(Digest, DependsOnWhatWasBeforeAndIsNeverNone) {
  const std::vector<std::byte> data(100);
  EXPECT_NE(digest_of(data, 1, 0), digest_of(data, 1, 1));
  EXPECT_NE(digest_of({}, 1, 0), 0);
}

INSTANTIATE_TEST_SUITE_P(Bytes, Digests, testing::Values(1, 64, 2047, 2048, 2049, 2113, 4096, 100001));

}  // namespace
}  // namespace ccom
