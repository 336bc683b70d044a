// SPDX-License-Identifier: Apache-2.0
//
// Lines that pass between cores: what claiming touches, and the measurement between two ranks.
#include "node/lines.h"

#include <gtest/gtest.h>

#include <new>
#include <thread>
#include <vector>

#include "base/time.h"

namespace ccom {
namespace {

constexpr std::chrono::seconds kLong(20);

struct Page {
  Page() : memory(new (std::align_val_t(4096)) std::byte[kLineProbe]()) {}
  ~Page() { ::operator delete[](memory, std::align_val_t(4096)); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  std::byte* const memory;
};

TEST(Lines, AreClaimedOnceEachAndOnlyWithinTheStretch) {
  const Page page;
  for (const size_t begin : {0, 1, 63, 64, 100}) {
    for (const size_t size : {0, 1, 2, 63, 64, 65, 127, 128, 1000}) {
      std::fill_n(page.memory, 2048, std::byte{0xff});
      claim_lines(page.memory + begin, size);
      std::vector<int> stores(2048 / kLineBytes);
      for (size_t at = 0; at < 2048; ++at) {
        if (page.memory[at] == std::byte{0xff}) continue;
        ++stores[at / kLineBytes];
        EXPECT_TRUE(at >= begin && at < begin + size) << begin << " " << size << ": " << at;
      }
      for (size_t line = 0; line < stores.size(); ++line) {
        const bool is_in = size > 0 && line >= begin / kLineBytes && line <= (begin + size - 1) / kLineBytes;
        EXPECT_EQ(stores[line], is_in ? 1 : 0) << begin << " " << size << ": line " << line;
      }
    }
  }
}

TEST(Lines, AreMeasuredBetweenTwoThreads) {
  const Page page;
  std::optional<LineCosts> other = LineCosts{};
  std::thread second([&] { other = probe_lines(page.memory, false, kLong); });
  const std::optional<LineCosts> costs = probe_lines(page.memory, true, kLong);
  second.join();
  ASSERT_TRUE(costs);
  EXPECT_FALSE(other) << "the first one has the figures";
  for (const double ns : {costs->plain_ns, costs->claimed_ns, costs->streamed_ns}) {
    EXPECT_GT(ns, 0);
    EXPECT_LT(ns, 1e6) << "a millisecond for a byte";
  }
}

TEST(Lines, AreNotWaitedForLongerThanSaid) {
  for (const bool is_first : {true, false}) {
    const Page page;
    const Clock::time_point begin = Clock::now();
    EXPECT_FALSE(probe_lines(page.memory, is_first, std::chrono::milliseconds(5)));
    EXPECT_LT(Clock::now() - begin, kLong);
  }
}

// Whoever has given up leaves nobody waiting.
TEST(Lines, OfOneThatComesTooLateAreNotMeasured) {
  const Page page;
  EXPECT_FALSE(probe_lines(page.memory, true, std::chrono::milliseconds(1)));
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE(probe_lines(page.memory, false, 3 * kLong));
  EXPECT_LT(Clock::now() - begin, kLong);
}

}  // namespace
}  // namespace ccom
