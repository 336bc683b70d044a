// SPDX-License-Identifier: Apache-2.0
//
// Allreduce of float32, allgather and alltoall through shared memory, in one of several settings. Allreduce:
//
//   mailbox  each rank copies its input to all, and each adds everything: one flag each
//   staged   chunk by chunk: inputs to staging memory, the sum of an own part to a result bank, the others' sums from
//            there; two banks of each, so that there is one barrier per chunk
//   mapped   barrier; the sum of an own part, from the others' inputs to the others' outputs; barrier
//
// Allgather and alltoall:
//
//   staged   chunk by chunk: what is for others to staging memory; the own block is copied while they come; what they
//            have for this rank from there; two banks, one barrier per chunk
//   mapped   barrier; from the others' inputs; barrier
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

enum class Way { Mailbox, Staged, Mapped };

struct Setting {
  Way way;
  size_t chunk = 0;  // bytes
  bool streams_stage = false, streams_result = false, streams_output = false;
  bool claims = false;  // lines that this rank was the last to read
};

struct Mail {
  std::atomic<uint32_t> number;
  char head[kLineBytes - sizeof(std::atomic<uint32_t>)];  // what fits beside the flag
  char body[kMailbox];
};

struct alignas(4096) Rank {
  alignas(128) std::atomic<uint32_t> arrived;
  alignas(128) double us;
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

enum class Kind { Allreduce, Allgather, Alltoall };

class Collective {
 public:
  Collective(Kind kind, int rank, int ranks, Rank* shared)
      : kind_(kind), own_(static_cast<size_t>(rank)), ranks_(static_cast<size_t>(ranks)), shared_(shared) {
    cpu_set_t allowed;
    spins_ = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && ranks <= CPU_COUNT(&allowed);
  }

  Kind kind() const { return kind_; }

  // Memory for two buffers of `half` bytes each per rank, which have the same place there on all ranks.
  void set_mapped(char* arena, size_t half) { arena_ = arena, half_ = half; }
  char* half(int index) const { return arena_ + (2 * own_ + static_cast<size_t>(index)) * half_; }

  void call(const Setting& setting, const float* send, float* recv, size_t count) {
    switch (setting.way) {
      case Way::Mailbox: mailbox(setting, send, recv, count); break;
      case Way::Staged: is_sum() ? staged(setting, send, recv, count) : exchanged(setting, send, recv, count); break;
      case Way::Mapped: is_sum() ? mapped(setting, send, recv, count) : fetched(setting, send, recv, count); break;
    }
  }

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

 private:
  bool is_sum() const { return kind_ == Kind::Allreduce; }
  Part part_of(size_t rank, size_t count) const {
    const size_t lines = (count + kLineFloats - 1) / kLineFloats;
    const size_t each = (lines + ranks_ - 1) / ranks_ * kLineFloats;
    const size_t begin = std::min(count, each * rank);
    return {begin, std::min(count, begin + each) - begin};
  }
  size_t other(size_t distance) const { return (own_ + distance) % ranks_; }

  void await(const std::atomic<uint32_t>& word, uint32_t number) const {
    while (static_cast<int32_t>(word.load(std::memory_order_acquire) - number) < 0) {
      if (!spins_) ::sched_yield();
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
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

  void mailbox(const Setting& setting, const float* send, float* recv, size_t count) {
    const size_t bank = ++mails_ % 2;
    const bool fits = count * sizeof(float) <= sizeof(Mail::head);
    const auto data = [&](size_t rank) {
      Mail& mail = shared_[rank].mail[bank];
      return reinterpret_cast<float*>(fits ? mail.head : mail.body);
    };
    Mail& own = shared_[own_].mail[bank];
    std::memcpy(data(own_), send, count * sizeof(float));
    own.number.store(mails_, std::memory_order_release);
    for (size_t distance = 1; distance < ranks_; ++distance) {
      await(shared_[other(distance)].mail[bank].number, mails_);
    }
    // The same order on all ranks.
    sources_.clear();
    for (size_t rank = 0; rank < ranks_; ++rank) sources_.push_back(rank == own_ ? send : data(rank));
    own_source_ = send;
    sum(sources_, {{recv, false}}, count, setting.claims && !fits);
  }

  void staged(const Setting& setting, const float* send, float* recv, size_t count) {
    const size_t chunk = setting.chunk / sizeof(float), chunks = (count + chunk - 1) / chunk;
    const auto length = [&](size_t c) { return std::min(chunk, count - c * chunk); };
    const auto give = [&](size_t c) {
      float* const stage = shared_[own_].stage[c % 2];
      for (size_t distance = 1; distance < ranks_; ++distance) {
        const Part part = part_of(other(distance), length(c));
        copy(send + c * chunk + part.begin, {stage + part.begin, setting.streams_stage}, part.count);
      }
      if (setting.streams_stage) finish_streams();
    };
    const auto reduce = [&](size_t c) {
      const Part own = part_of(own_, length(c));
      own_source_ = send + c * chunk + own.begin;
      sources_.assign(1, own_source_);
      for (size_t distance = 1; distance < ranks_; ++distance) {
        sources_.push_back(shared_[other(distance)].stage[c % 2] + own.begin);
      }
      sum(sources_,
          {{recv + c * chunk + own.begin, setting.streams_output},
           {shared_[own_].result[c % 2], setting.streams_result}},
          own.count, setting.claims);
      if (setting.streams_result) finish_streams();
    };
    const auto take = [&](size_t c) {
      for (size_t distance = 1; distance < ranks_; ++distance) {
        const Part part = part_of(other(distance), length(c));
        copy(shared_[other(distance)].result[c % 2], {recv + c * chunk + part.begin, setting.streams_output},
             part.count, setting.claims && ranks_ == 2);
      }
    };
    // A bank is written again two steps later: whoever reads it has passed the barrier between. The next call's first
    // sums come after its first barrier, so after the last `take` of this one.
    give(0);
    barrier();
    for (size_t c = 0; c < chunks; ++c) {
      if (c + 1 < chunks) give(c + 1);
      reduce(c);
      if (c > 0) take(c - 1);
      barrier();
    }
    take(chunks - 1);
    if (setting.streams_output) finish_streams();
  }

  // Allgather, alltoall: `count` elements of each block.
  size_t block(size_t rank, size_t count) const { return kind_ == Kind::Alltoall ? rank * count : 0; }

  void exchanged(const Setting& setting, const float* send, float* recv, size_t count) {
    const size_t blocks = kind_ == Kind::Alltoall ? ranks_ : 1;  // in a bank
    const size_t piece = std::max(kLineFloats, setting.chunk / sizeof(float) / blocks / kLineFloats * kLineFloats);
    const size_t pieces = (count + piece - 1) / piece;
    const auto length = [&](size_t p) { return std::min(piece, count - p * piece); };
    const auto stage = [&](size_t rank, size_t target, size_t p) {
      return shared_[rank].stage[(first_ + p) % 2] + block(target, piece);
    };
    const auto give = [&](size_t p) {
      for (size_t distance = 1; distance <= (blocks > 1 ? ranks_ - 1 : 1); ++distance) {
        const size_t to = other(distance);
        copy(send + block(to, count) + p * piece, {stage(own_, to, p), setting.streams_stage}, length(p));
      }
      if (setting.streams_stage) finish_streams();
    };
    const auto take = [&](size_t p) {
      for (size_t distance = 1; distance < ranks_; ++distance) {
        const size_t from = other(distance);
        copy(stage(from, own_, p), {recv + from * count + p * piece, setting.streams_output}, length(p),
             setting.claims && ranks_ == 2);
      }
    };
    // A bank is written again two pieces later, of the next call too: whoever reads it has arrived since.
    give(0);
    for (size_t p = 0; p < pieces; ++p) {
      arrive();
      copy(send + block(own_, count) + p * piece, {recv + own_ * count + p * piece, setting.streams_output}, length(p));
      await_all();
      if (p + 1 < pieces) give(p + 1);
      take(p);
    }
    first_ += pieces;
    if (setting.streams_output) finish_streams();
  }

  void fetched(const Setting& setting, const float* send, float* recv, size_t count) {
    arrive();
    copy(send + block(own_, count), {recv + own_ * count, setting.streams_output}, count);
    await_all();
    for (size_t distance = 1; distance < ranks_; ++distance) {
      const size_t from = other(distance);
      copy(of(from, send) + block(own_, count), {recv + from * count, setting.streams_output}, count);
    }
    if (setting.streams_output) finish_streams();
    barrier();
  }

  // Where another rank has what this one has at `own`.
  float* of(size_t rank, const float* own) const {
    return reinterpret_cast<float*>(arena_ + 2 * rank * half_ + (reinterpret_cast<const char*>(own) - half(0)));
  }

  void mapped(const Setting& setting, const float* send, float* recv, size_t count) {
    const Part part = part_of(own_, count);
    barrier();
    std::array<Target, kMostRanks> to;
    sources_.clear();
    for (size_t distance = 0; distance < ranks_; ++distance) {
      sources_.push_back(of(other(distance), send) + part.begin);
      to[distance] = {of(other(distance), recv) + part.begin, setting.streams_output};
    }
    add_lines(sources_.data(), ranks_, to.data(), ranks_, part.count);
    if (setting.streams_output) finish_streams();
    barrier();
  }

  const Kind kind_;
  const size_t own_, ranks_;
  Rank* const shared_;
  bool spins_ = true;
  char* arena_ = nullptr;
  size_t half_ = 0;
  uint32_t arrived_ = 0, mails_ = 0;
  size_t first_ = 0;  // bank of the next exchange
  std::vector<const float*> sources_;
  const float* own_source_ = nullptr;  // of sources_; not claimed
};

}  // namespace limit
