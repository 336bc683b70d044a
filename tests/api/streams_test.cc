// SPDX-License-Identifier: Apache-2.0
//
// Many small calls on streams, as in a backward pass: how often the streams' threads are woken.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "api/handles.h"
#include "tests/api/ranks.h"

namespace ccom {
namespace {

TEST(Streams, AThousandSmallCallsCostAHandfulOfWakeUps) {
  constexpr int kCalls = 1000;
  with_ranks(2, [](int, ccomComm_t comm) {
    ccomStream_t stream = nullptr;
    ASSERT_EQ(ccomStreamCreate(&stream), ccomSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // its thread has gone to sleep
    std::vector<int32_t> x(kCalls * 4, 1);
    for (int i = 0; i < kCalls; ++i) {
      ASSERT_EQ(ccomAllReduce(&x[i * 4], &x[i * 4], 4, ccomInt32, ccomSum, comm, stream), ccomSuccess);
    }
    ASSERT_EQ(ccomStreamSynchronize(stream, 20000), ccomSuccess);
    for (const int32_t value : x) ASSERT_EQ(value, 2);
    // One if nothing disturbs; the thread may sleep in between when the caller is kept from its core.
    EXPECT_LE(stream->stream.wakeups(), kCalls / 20U);
    RecordProperty("wakeups", static_cast<int>(stream->stream.wakeups()));
    EXPECT_EQ(ccomStreamDestroy(stream), ccomSuccess);
  });
}

}  // namespace
}  // namespace ccom
