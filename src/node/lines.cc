// SPDX-License-Identifier: Apache-2.0
#include "node/lines.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/backoff.h"
#include "base/time.h"
#include "kernels/kernels.h"

namespace ccom {
namespace {

enum class Manner : uint32_t { Plain, Claimed, Streamed };
constexpr std::array kManners{Manner::Plain, Manner::Claimed, Manner::Streamed};

constexpr size_t kPassed = size_t{32} << 10;  // bytes
constexpr size_t kPassedAt = kLineProbe - kPassed;
constexpr uint32_t kWarmUp = 5, kRounds = 15;  // of each manner
constexpr uint32_t kEnd = UINT32_MAX;
constexpr uint32_t kPassings = static_cast<uint32_t>(kManners.size()) * (kWarmUp + kRounds);

// Numbers of passings: of the one who stores, and of the one who has loaded. kEnd: it has given up.
struct Turns {
  alignas(2 * kLineBytes) std::atomic<uint32_t> stored;
  alignas(2 * kLineBytes) std::atomic<uint32_t> loaded;
  alignas(2 * kLineBytes) std::atomic<int> core;  // of the one who stores
};
static_assert(sizeof(Turns) <= kPassedAt);

Manner manner_of(uint32_t passing) { return kManners[(passing - 1) / (kWarmUp + kRounds)]; }

// Takes this thread away from a core, if it is there and may go elsewhere. Ranks that have just started often share
// one until the scheduler moves one of them, some milliseconds later.
class AwayFrom {
 public:
  explicit AwayFrom(int core) {
    if (core < 0 || core >= CPU_SETSIZE || ::sched_getcpu() != core) return;
    if (::sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) return;
    cpu_set_t others = allowed_;
    CPU_CLR(core, &others);
    has_moved_ = CPU_COUNT(&others) > 0 && ::sched_setaffinity(0, sizeof others, &others) == 0;
  }
  ~AwayFrom() {
    if (has_moved_) ::sched_setaffinity(0, sizeof allowed_, &allowed_);
  }
  AwayFrom(const AwayFrom&) = delete;
  AwayFrom& operator=(const AwayFrom&) = delete;

 private:
  cpu_set_t allowed_{};
  bool has_moved_ = false;
};

class LineProbe {
 public:
  LineProbe(std::byte* memory, std::chrono::nanoseconds patience)
      : turns_(*reinterpret_cast<Turns*>(memory)), bytes_(memory + kPassedAt), end_(Clock::now() + patience) {}

  // Whether the other has come so far in time.
  bool await(const std::atomic<uint32_t>& word, uint32_t passing) const {
    constexpr uint32_t kSpins = 500, kPollsPerClock = 64;
    for (uint32_t polls = 0;; ++polls) {
      const uint32_t value = word.load(std::memory_order_acquire);
      if (value == kEnd) return false;
      if (value >= passing) return true;
      polls < kSpins ? WaitSystem::pause() : WaitSystem::yield();
      if (polls % kPollsPerClock == kPollsPerClock - 1 && Clock::now() > end_) return false;
    }
  }

  std::optional<LineCosts> store() {
    std::array<std::array<double, kRounds>, kManners.size()> ns{};
    turns_.core.store(::sched_getcpu(), std::memory_order_relaxed);
    for (uint32_t passing = 1; passing <= kPassings; ++passing) {
      const uint32_t round = (passing - 1) % (kWarmUp + kRounds);
      const Clock::time_point begin = Clock::now();
      if (manner_of(passing) == Manner::Streamed) {
        copy_streaming(bytes_, own_.data(), kPassed);
      } else {
        std::memcpy(bytes_, own_.data(), kPassed);
      }
      turns_.stored.store(passing, std::memory_order_release);
      if (!await(turns_.loaded, passing)) return give_up(turns_.stored);
      const std::chrono::duration<double, std::nano> passed = Clock::now() - begin;
      if (round >= kWarmUp) ns[static_cast<size_t>(manner_of(passing))][round - kWarmUp] = passed.count();
    }
    const auto byte_ns = [&](Manner manner) {
      auto& samples = ns[static_cast<size_t>(manner)];
      std::ranges::nth_element(samples, samples.begin() + kRounds / 2);
      return samples[kRounds / 2] / static_cast<double>(kPassed);
    };
    return LineCosts{byte_ns(Manner::Plain), byte_ns(Manner::Claimed), byte_ns(Manner::Streamed)};
  }

  std::optional<LineCosts> load() {
    if (!await(turns_.stored, 1)) return give_up(turns_.loaded);
    const AwayFrom other(turns_.core.load(std::memory_order_relaxed));
    for (uint32_t passing = 1; passing <= kPassings; ++passing) {
      if (!await(turns_.stored, passing)) return give_up(turns_.loaded);
      std::memcpy(own_.data(), bytes_, kPassed);
      if (manner_of(passing) == Manner::Claimed) claim_lines(bytes_, kPassed);
      turns_.loaded.store(passing, std::memory_order_release);
    }
    return std::nullopt;
  }

 private:
  static std::nullopt_t give_up(std::atomic<uint32_t>& word) {
    word.store(kEnd, std::memory_order_release);
    return std::nullopt;
  }

  Turns& turns_;
  std::byte* const bytes_;
  const Clock::time_point end_;
  std::array<std::byte, kPassed> own_{};
};

}  // namespace

std::optional<LineCosts> probe_lines(std::byte* memory, bool is_first, std::chrono::nanoseconds patience) {
  LineProbe probe(memory, patience);
  return is_first ? probe.store() : probe.load();
}

}  // namespace ccom
