// SPDX-License-Identifier: Apache-2.0
//
// Calls that a rank has accepted and cannot make, because memory or threads have run out, or will not make in time: an
// error there and on all ranks, and no later call waits for them, ccomCommDestroy included.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <semaphore>
#include <string>

#include "tests/harness/child.h"
#include "tests/harness/environment.h"
#include "tests/harness/waiting.h"
#include "tests/harness/world.h"

namespace {

thread_local int allocations_left = 0;  // of this thread, before the one that fails, once; 0: none does

bool fails() { return allocations_left > 0 && --allocations_left == 0; }

}  // namespace

#include "tests/operator_new.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr unsigned kMostSeconds = 60;  // of a child: what is tested waits for ever, or five minutes

// In a child of its own, which the kernel ends if it waits too long. `body` says what is wrong, or nothing.
std::string in_child(const std::function<std::string()>& body) {
  Child child([&body](const PacketSocket& test) { return test.send(body()), 0; }, kMostSeconds);
  const std::string wrong = child.receive();
  const int code = child.wait();
  return code == 0 ? wrong : wrong + " ended with " + std::to_string(code);
}

std::string differ(const char* what, int got, int wanted) {
  if (got == wanted) return "";
  return std::string(what) + " is " + std::to_string(got) + ", not " + std::to_string(wanted) + ": " +
         ccomGetLastError(nullptr) + "; ";
}

// From one place, whose text a process's first call allocates.
[[gnu::noinline, gnu::noclone]] ccomResult_t add(ccomComm_t comm, float* data, ccomStream_t stream = nullptr) {
  const ccomResult_t result = ccomAllReduce(data, data, 1, ccomFloat32, ccomSum, comm, stream);
  asm volatile("" ::: "memory");
  return result;
}

bool refuse_threads() {
  if (::geteuid() == 0 && ::setresuid(64321, 64321, 64321) != 0) return false;
  const rlimit none{.rlim_cur = 1, .rlim_max = 1};
  return ::setrlimit(RLIMIT_NPROC, &none) == 0;
}

ccomResult_t end_group_without_memory(ccomComm_t comm, float* data, ccomStream_t stream, int k) {
  EXPECT_OK(ccomGroupStart());
  EXPECT_OK(add(comm, data, stream));
  allocations_left = k;
  return ccomGroupEnd();
}

// The calls in which the k-th allocation fails, from 1 until none does.
using Call = std::function<ccomResult_t(ccomComm_t, ccomStream_t, int k)>;
std::string without_memory(const Call& call) {
  for (int k = 1;; ++k) {
    bool is_over = false;
    std::string wrong = in_child([&]() -> std::string {
      ccomComm_t comms[2];
      ccomConfig_t config = CCOM_CONFIG_INIT;
      config.timeoutMs = 30000;
      std::string found = differ("start", ccomCommInitAll(comms, 2, &config), ccomSuccess);
      ccomStream_t stream = nullptr;
      found += differ("stream", ccomStreamCreate(&stream), ccomSuccess);
      std::thread peer([&] {
        float data = 1;
        (void)add(comms[1], &data);
      });
      const ccomResult_t result = call(comms[0], stream, k);
      const bool fired = allocations_left == 0;
      allocations_left = 0;
      if (!fired || result == ccomSuccess) (void)ccomCommAbort(comms[0]);
      if (!fired) found += "none failed";
      // Where the call was refused before it was accepted the peer waits for this rank, which destroys.
      found += differ("destroy", ccomCommDestroy(comms[0]), ccomSuccess);
      peer.join();
      found += differ("destroy", ccomCommDestroy(comms[1]), ccomSuccess);
      (void)ccomStreamDestroy(stream);
      return found;
    });
    is_over = wrong == "none failed";
    if (is_over) return k > 1 ? "" : "no allocation was tried";
    if (!wrong.empty()) return "allocation " + std::to_string(k) + ": " + wrong;
  }
}

TEST(LostCalls, WithoutMemoryAreNotWaitedFor) {
  float data = 1;
  EXPECT_EQ(without_memory([&](ccomComm_t comm, ccomStream_t stream, int k) {
              allocations_left = k;
              return add(comm, &data, stream);
            }),
            "");
  EXPECT_EQ(without_memory([&](ccomComm_t comm, ccomStream_t, int k) {
              return end_group_without_memory(comm, &data, nullptr, k);
            }),
            "");
  EXPECT_EQ(without_memory([&](ccomComm_t comm, ccomStream_t stream, int k) {
              return end_group_without_memory(comm, &data, stream, k);
            }),
            "");
  EXPECT_EQ(without_memory([&](ccomComm_t comm, ccomStream_t, int k) {
              allocations_left = k;
              ccomWindow_t window = nullptr;
              const ccomResult_t result = ccomCommWindowRegister(comm, &data, sizeof data, &window, 0);
              return result;
            }),
            "");
}

// Of the rank that has no memory for a queued call, and of those that wait in it.
TEST(LostCalls, AreErrorsOnAllRanksAtOnce) {
  EXPECT_EQ(in_child([]() -> std::string {
              ccomComm_t comms[2];
              std::string found = differ("start", ccomCommInitAll(comms, 2, nullptr), ccomSuccess);
              ccomStream_t stream = nullptr;
              found += differ("stream", ccomStreamCreate(&stream), ccomSuccess);
              std::string of_peer;
              std::thread peer([&] {
                float data = 1;
                of_peer = differ("the peer's first result", add(comms[1], &data), ccomSuccess);
                of_peer += differ("the peer's result", add(comms[1], &data), ccomOutOfMemory);
              });
              float data = 1;
              // What a process's first queued call allocates comes before the call is accepted.
              found += differ("the first call's result", add(comms[0], &data, stream), ccomSuccess);
              found += differ("waiting for it", ccomStreamSynchronize(stream, -1), ccomSuccess);
              // Behind this and another call the queue has to grow for the next one.
              std::binary_semaphore may_end(0);
              const auto hold = [](void* user, ccomResult_t) { static_cast<std::binary_semaphore*>(user)->acquire(); };
              found += differ("the callback's result", ccomStreamAddCallback(stream, hold, &may_end), ccomSuccess);
              found += differ("the second call's result", add(comms[0], &data, stream), ccomSuccess);
              allocations_left = 1;
              found += differ("the call's result", add(comms[0], &data, stream), ccomOutOfMemory);
              may_end.release();
              peer.join();
              found += of_peer + differ("the next one's", add(comms[0], &data), ccomOutOfMemory);
              ccomResult_t sticky = ccomSuccess;
              (void)ccomCommGetAsyncError(comms[0], &sticky);
              return found + differ("the sticky error", sticky, ccomOutOfMemory);
            }),
            "");
}

TEST(LostCalls, OfAGroupWithoutThreadsAreErrorsAtOnce) {
  EXPECT_EQ(in_child([]() -> std::string {
              ccomComm_t comms[3];
              std::string found;
              for (ccomComm_t& comm : comms) found += differ("start", ccomCommInitAll(&comm, 1, nullptr), ccomSuccess);
              if (!refuse_threads()) return "threads are not refused";
              float data[3] = {1, 1, 1};
              (void)ccomGroupStart();
              for (int i = 0; i < 3; ++i) found += differ("call", add(comms[i], &data[i]), ccomSuccess);
              found += differ("group", ccomGroupEnd(), ccomSystemError);
              if (std::string(ccomGetLastError(nullptr)).find("thread") == std::string::npos)
                found += "no word of threads";
              for (int i = 0; i < 3; ++i) {
                ccomResult_t sticky = ccomSuccess;
                (void)ccomCommGetAsyncError(comms[i], &sticky);
                const ccomResult_t wanted = i == 0 ? ccomSuccess : ccomOutOfMemory;
                found += differ("sticky", sticky, wanted) + differ("next", add(comms[i], &data[i]), wanted);
                found += differ("destroy", ccomCommDestroy(comms[i]), ccomSuccess);
              }
              return found;
            }),
            "");
}

// One thread drives two ranks, and the other one's thread is refused.
TEST(LostCalls, OfAGroupsOtherRankAreErrorsAtOnce) {
  EXPECT_EQ(in_child([]() -> std::string {
              ccomComm_t comms[2];
              std::string found = differ("start", ccomCommInitAll(comms, 2, nullptr), ccomSuccess);
              if (!refuse_threads()) return "threads are not refused";
              float data[2] = {1, 1};
              (void)ccomGroupStart();
              for (int i = 0; i < 2; ++i) found += differ("call", add(comms[i], &data[i]), ccomSuccess);
              found += differ("group", ccomGroupEnd(), ccomSystemError);
              for (ccomComm_t comm : comms) found += differ("destroy", ccomCommDestroy(comm), ccomSuccess);
              return found;
            }),
            "");
}

// 5 are enough for the library's own, and some of the ranks.
TEST(LostCalls, OfAStartWithoutThreadsAreAnErrorAtOnce) {
  for (const rlim_t most : {2, 3, 5, 7}) {
    EXPECT_EQ(in_child([most]() -> std::string {
                if (::geteuid() == 0 && ::setresuid(64321, 64321, 64321) != 0) return "no other user";
                const rlimit limit{.rlim_cur = most, .rlim_max = most};
                if (::setrlimit(RLIMIT_NPROC, &limit) != 0) return "no limit";
                ccomComm_t comms[8] = {};
                const std::string found = differ("start", ccomCommInitAll(comms, 8, nullptr), ccomSystemError);
                const std::string text = ccomGetLastError(nullptr);
                return text.find("thread") != std::string::npos ? found : found + text;
              }),
              "")
        << most;
  }
}

struct Held {
  std::atomic<bool> has_begun{false}, may_end{false};
};
void hold(void* user, ccomResult_t) {
  auto& held = *static_cast<Held*>(user);
  held.has_begun = true;
  wait_until([&held] { return held.may_end.load(); });
}

// A call is queued behind a callback that does not end.
template <typename Body>
void behind_a_callback(const Body& body) {
  EXPECT_EQ(in_child([&body]() -> std::string {
              Held held;
              ccomComm_t comm = nullptr;
              ccomConfig_t config = CCOM_CONFIG_INIT;
              config.timeoutMs = 100;
              std::string found = differ("start", ccomCommInitAll(&comm, 1, &config), ccomSuccess);
              ccomStream_t stream = nullptr;
              found += differ("stream", ccomStreamCreate(&stream), ccomSuccess);
              found += differ("callback", ccomStreamAddCallback(stream, hold, &held), ccomSuccess);
              wait_until([&held] { return held.has_begun.load(); });
              float queued = 1, other = 1;
              found += differ("queued", add(comm, &queued, stream), ccomSuccess);
              found += body(comm, &other);
              held.may_end = true;
              found += differ("destroy", ccomCommDestroy(comm), ccomSuccess);
              (void)ccomStreamDestroy(stream);
              return found;
            }),
            "");
}

TEST(LostCalls, AreWaitedForByFinalizeForTimeoutMs) {
  behind_a_callback([](ccomComm_t comm, float* data) {
    const auto start = steady_clock::now();
    std::string found = differ("finalize", ccomCommFinalize(comm), ccomTimeout);
    if (steady_clock::now() - start < milliseconds(90)) found += "too early";
    return found + differ("a later call", add(comm, data), ccomInvalidUsage);
  });
}

TEST(LostCalls, AreNotWaitedForAfterAnAbort) {
  behind_a_callback([](ccomComm_t comm, float* data) {
    std::string found = differ("abort", ccomCommAbort(comm), ccomSuccess);
    found += differ("call", add(comm, data), ccomAborted);
    return found + differ("finalize", ccomCommFinalize(comm), ccomAborted);
  });
}

TEST(LostCalls, AreWaitedForByACallForTimeoutMs) {
  behind_a_callback([](ccomComm_t comm, float* data) {
    const auto start = steady_clock::now();
    std::string found = differ("call", add(comm, data), ccomTimeout);
    const auto waited = steady_clock::now() - start;
    if (waited < milliseconds(90) || waited > milliseconds(10'000)) found += "not after its timeout";
    return found + differ("a later call", add(comm, data), ccomTimeout);
  });
}

// One that waits already.
TEST(LostCalls, AreWaitedForUntilAnAbort) {
  behind_a_callback([](ccomComm_t comm, float* data) {
    (void)ccomCommSetTimeout(comm, 60'000);
    std::string of_call;
    std::thread caller([&] { of_call = differ("call", add(comm, data), ccomAborted); });
    std::this_thread::sleep_for(milliseconds(20));  // it waits by now
    const std::string of_abort = differ("abort", ccomCommAbort(comm), ccomSuccess);
    caller.join();
    return of_call + of_abort;
  });
}

// Memory runs out while ccomCommDestroy puts down which ways calls have found.
TEST(LostCalls, OfMemoryAtTheEndKillNobody) {
  const ScopedVariable saved("CCOM_TUNING_SAVE", "/dev/null");
  for (int k = 1, is_over = 0; is_over == 0; ++k) {
    const std::string wrong = in_child([k]() -> std::string {
      ccomComm_t comms[2];
      std::string found = differ("start", ccomCommInitAll(comms, 2, nullptr), ccomSuccess);
      const auto calls = [&comms](int rank) {
        std::vector<float> data(1 << 16);
        for (int i = 0; i < 40; ++i)
          (void)ccomAllReduce(data.data(), data.data(), data.size(), ccomFloat32, ccomSum, comms[rank], nullptr);
      };
      std::thread peer(calls, 1);
      calls(0);
      peer.join();
      allocations_left = k;
      found += differ("destroy", ccomCommDestroy(comms[0]), ccomSuccess);
      if (allocations_left > 0) found += "none failed";
      allocations_left = 0;
      return found + differ("destroy", ccomCommDestroy(comms[1]), ccomSuccess);
    });
    is_over = wrong == "none failed" ? 1 : 0;
    ASSERT_TRUE(is_over != 0 || wrong.empty()) << "allocation " << k << ": " << wrong;
    k += k > 8 ? k / 2 : 0;
  }
}

}  // namespace
}  // namespace ccom
