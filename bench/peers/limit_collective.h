// SPDX-License-Identifier: Apache-2.0
//
// What the collectives of the limit share: memory of all ranks, flags, sums, and the trial of a setting.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "limit_lines.h"
#include "sync.h"

namespace limit {

constexpr size_t kMostRanks = SYNC_MAX_RANKS;
constexpr size_t kMailbox = size_t{128} << 10;  // most bytes of a call
constexpr size_t kChunks[] = {32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20};
constexpr size_t kBank = size_t{1} << 20;  // bytes: the largest chunk
constexpr size_t kBlock = 1024;            // elements that are claimed while they are in the first cache
constexpr size_t kMostBanks = 32;

enum class Way { Mailbox, Staged, Mapped, Shared, Inputs, Parts };

struct Setting {
  Way way;
  size_t chunk = 0;  // bytes
  bool streams_stage = false, streams_result = false, streams_output = false;
  bool claims = false;  // lines that this rank was the last to read
  size_t banks = 2;
  bool sleeps = false;  // in poll(), while there is nothing to receive
};

struct Mail {
  std::atomic<uint32_t> number;
  char head[kLineBytes - sizeof(std::atomic<uint32_t>)];  // what fits beside the flag
  char body[kMailbox];
};

struct alignas(kLineBytes) Letter {
  std::atomic<uint32_t> number;
  char data[kLineBytes - sizeof(std::atomic<uint32_t>)];
};

struct alignas(4096) Rank {
  alignas(128) std::atomic<uint32_t> arrived;
  alignas(128) std::atomic<uint32_t> given;  // pieces
  alignas(128) std::atomic<uint32_t> taken;
  alignas(128) std::atomic<uint32_t> port;
  alignas(128) double us;
  alignas(128) Letter letters[kMostBanks];
  alignas(128) Mail mail[2];
  alignas(4096) float stage[2][kBank / sizeof(float)];
  alignas(4096) float result[2][kBank / sizeof(float)];
};

struct Part {
  size_t begin, count;  // elements
};

inline double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Collective {
 public:
  Collective(int rank, int ranks, Rank* shared)
      : own_(static_cast<size_t>(rank)), ranks_(static_cast<size_t>(ranks)), shared_(shared) {
    cpu_set_t allowed;
    spins_ = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && ranks <= CPU_COUNT(&allowed);
  }
  virtual ~Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  // What is tried for `count`, which is that of measure.h.
  virtual std::vector<Setting> settings(size_t count) const = 0;
  virtual void call(const Setting& setting, const float* send, float* recv, size_t count) = 0;

  // Memory for two buffers of `half` bytes each per rank, which have the same place there on all ranks.
  void set_mapped(char* arena, size_t half) { arena_ = arena, half_ = half; }
  char* half(int index) const { return arena_ + (2 * own_ + static_cast<size_t>(index)) * half_; }

  // Microseconds per call of the slowest rank, on all ranks.
  double timed(const Setting& setting, int calls, const float* send, float* recv, size_t count) {
    barrier();
    const double begin = now_us();
    for (int i = 0; i < calls; ++i) call(setting, send, recv, count);
    shared_[own_].us = (now_us() - begin) / calls;
    barrier();
    double most = 0;
    for (size_t rank = 0; rank < ranks_; ++rank) most = std::max(most, shared_[rank].us);
    barrier();
    return most;
  }

 protected:
  bool is_mapped() const { return arena_ != nullptr; }
  Part part_of(size_t rank, size_t count) const {
    const size_t lines = (count + kLineFloats - 1) / kLineFloats;
    const size_t each = (lines + ranks_ - 1) / ranks_ * kLineFloats;
    const size_t begin = std::min(count, each * rank);
    return {begin, std::min(count, begin + each) - begin};
  }
  size_t other(size_t distance) const { return (own_ + distance) % ranks_; }

  // What the word is once it has reached `number`.
  uint32_t await(const std::atomic<uint32_t>& word, uint32_t number) const {
    uint32_t found;
    while (static_cast<int32_t>((found = word.load(std::memory_order_acquire)) - number) < 0) relax();
    return found;
  }
  void relax() const {
    if (!spins_) ::sched_yield();
#if defined(__x86_64__)
    _mm_pause();
#endif
  }
  void barrier() {
    arrive();
    await_all();
  }
  void arrive() { shared_[own_].arrived.store(++arrived_, std::memory_order_release); }
  void await_all() {
    for (size_t distance = 1; distance < ranks_; ++distance) await(shared_[other(distance)].arrived, arrived_);
  }

  // `claims`: sources other than own_source_, block by block.
  void sum(const std::vector<const float*>& sources, std::initializer_list<Target> targets, size_t count, bool claims) {
    std::array<const float*, kMostRanks> from;
    std::array<Target, 2> to;
    const size_t block = claims ? kBlock : count;
    for (size_t begin = 0; begin < count; begin += block) {
      const size_t length = std::min(block, count - begin);
      for (size_t i = 0; i < sources.size(); ++i) from[i] = sources[i] + begin;
      size_t outputs = 0;
      for (const Target& target : targets) to[outputs++] = {target.at + begin, target.is_streamed};
      add_lines(from.data(), sources.size(), to.data(), outputs, length);
      for (size_t i = 0; claims && i < sources.size(); ++i) {
        if (sources[i] != own_source_) claim_lines(from[i], length);
      }
    }
  }
  void copy(const float* from, Target to, size_t count, bool claims = false) {
    sources_.assign(1, from);
    own_source_ = nullptr;
    sum(sources_, {to}, count, claims);
  }

  // Where another rank has what this one has at `own`.
  float* of(size_t rank, const float* own) const {
    return reinterpret_cast<float*>(arena_ + 2 * rank * half_ + (reinterpret_cast<const char*>(own) - half(0)));
  }

  const size_t own_, ranks_;
  Rank* const shared_;
  std::vector<const float*> sources_;
  const float* own_source_ = nullptr;  // of sources_; not claimed

 private:
  bool spins_ = true;
  char* arena_ = nullptr;
  size_t half_ = 0;
  uint32_t arrived_ = 0;
};

}  // namespace limit
