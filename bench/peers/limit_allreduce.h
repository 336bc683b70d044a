// SPDX-License-Identifier: Apache-2.0
//
// Allreduce of float32 through shared memory. Every input has to be read by whoever adds it, and every output to be
// stored by somebody; between private pages both cross memory that all ranks map. That, and the flags that say that
// data are there, is all that these do:
//
//   mailbox  each rank copies its input to all, and each adds everything: one flag each
//   staged   chunk by chunk: inputs to staging memory, the sum of an own part to a result bank, the others' sums from
//            there; two banks of each, so that there is one barrier per chunk
//   mapped   barrier; the sum of an own part, from the others' inputs to the others' outputs; barrier
#pragma once

#include "limit_collective.h"

namespace limit {

class Allreduce final : public Collective {
 public:
  using Collective::Collective;

  std::vector<Setting> settings(size_t count) const override {
    const size_t bytes = count * sizeof(float);
    std::vector<Setting> all;
    if (bytes <= kMailbox) {
      all.push_back({.way = Way::Mailbox});
      if (ranks_ == 2 && bytes > kLineBytes) all.push_back({.way = Way::Mailbox, .claims = true});
    }
    if (is_mapped()) {
      for (const bool streams : {false, true}) all.push_back({.way = Way::Mapped, .streams_output = streams});
      return all;
    }
    for (const size_t chunk : kChunks) {
      if (chunk > kChunks[0] && chunk / 2 >= bytes) continue;  // as the one before
      for (int bits = 0; bits < 16; ++bits) {
        const bool stage = bits & 1, result = bits & 2, output = bits & 4, claims = bits & 8;
        if ((stage != result && output) || (claims && (stage || result))) continue;  // never the best
        all.push_back({Way::Staged, chunk, stage, result, output, claims});
      }
    }
    return all;
  }

  void call(const Setting& setting, const float* send, float* recv, size_t count) override {
    switch (setting.way) {
      case Way::Mailbox: mailbox(setting, send, recv, count); break;
      case Way::Mapped: mapped(setting, send, recv, count); break;
      default: staged(setting, send, recv, count);
    }
  }

 private:
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

  uint32_t mails_ = 0;
};

}  // namespace limit
