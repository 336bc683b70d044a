// SPDX-License-Identifier: Apache-2.0
//
// Many small calls on streams, as in a backward pass: how often the streams' threads are woken; and what ends the wait
// for an event.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "api/handles.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

TEST(Streams, AThousandSmallCallsCostAHandfulOfWakeUps) {
  constexpr int kCalls = 1000;
  with_ranks(2, [](int, ccomComm_t comm) {
    const ccomStream_t stream = new_stream();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // its thread has gone to sleep
    std::vector<int32_t> x(kCalls * 4, 1);
    for (int i = 0; i < kCalls; ++i) {
      ASSERT_OK(ccomAllReduce(&x[i * 4], &x[i * 4], 4, ccomInt32, ccomSum, comm, stream));
    }
    ASSERT_OK(ccomStreamSynchronize(stream, 20000));
    for (const int32_t value : x) ASSERT_EQ(value, 2);
    // One if nothing disturbs; the thread may sleep in between when the caller is kept from its core.
    EXPECT_LE(stream->stream.wakeups(), kCalls / 20U);
    RecordProperty("wakeups", static_cast<int>(stream->stream.wakeups()));
    EXPECT_OK(ccomStreamDestroy(stream));
  });
}

// A stream that waits for an event, behind a call that rank 1 never makes. Returns what the wait ends with.
ccomResult_t wait_for_event_behind_a_call(ccomComm_t comm, const std::function<void()>& end_the_call) {
  ccomStream_t calls = nullptr, waits = nullptr;
  ccomEvent_t event = nullptr;
  EXPECT_OK(ccomStreamCreate(&calls));
  EXPECT_OK(ccomStreamCreate(&waits));
  EXPECT_OK(ccomEventCreate(&event));
  EXPECT_OK(ccomBarrier(comm, calls));
  EXPECT_OK(ccomEventRecord(event, calls));
  EXPECT_OK(ccomStreamWaitEvent(waits, event));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for an end that comes too early
  EXPECT_EQ(ccomStreamQuery(waits), ccomInProgress);
  end_the_call();
  const ccomResult_t waited = ccomStreamSynchronize(waits, 20000);  // far below CCOM_TIMEOUT_MS
  EXPECT_EQ(ccomEventQuery(event), waited);
  ccomStreamDestroy(calls);
  ccomStreamDestroy(waits);
  ccomEventDestroy(event);
  return waited;
}

TEST(Streams, AnAbortEndsTheWaitForAnEventBehindACallOfThatCommunicator) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    if (rank == 1) return;
    EXPECT_EQ(wait_for_event_behind_a_call(comm, [comm] { EXPECT_OK(ccomCommAbort(comm)); }), ccomAborted);
  });
}

TEST(Streams, AnErrorOfACommunicatorEndsTheWaitForAnEventBehindItsCall) {
  std::vector<ccomComm_t> comms(2);
  ASSERT_OK(ccomCommInitAll(comms.data(), 2, nullptr));
  EXPECT_EQ(wait_for_event_behind_a_call(comms[0], [&] { EXPECT_OK(ccomCommDestroy(comms[1])); }), ccomRemoteError);
  EXPECT_OK(ccomCommDestroy(comms[0]));
}

}  // namespace
}  // namespace ccom
