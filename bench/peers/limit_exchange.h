// SPDX-License-Identifier: Apache-2.0
//
// Allgather, alltoall and reduce-scatter of float32 through shared memory. A rank has to read what the others have for
// it, and to store its output; between private pages what is for others has to be copied to memory that they map. That,
// and the flags that say that data are there, is all that these do:
//
//   mailbox  what is for others to a mailbox with one flag; what they have for this rank from theirs
//   staged   chunk by chunk: what is for others to staging memory; the own block is copied while they come; what they
//            have for this rank from there; two banks, one barrier per chunk
//   mapped   barrier; from the others' inputs; barrier
//
// Reduce-scatter adds what comes to the own block, instead of copying each.
#pragma once

#include "limit_collective.h"

namespace limit {

enum class Kind { Allgather, Alltoall, ReduceScatter };

class Exchange final : public Collective {
 public:
  Exchange(Kind kind, int rank, int ranks, Rank* shared) : Collective(rank, ranks, shared), kind_(kind) {}

  std::vector<Setting> settings(size_t count) const override {
    const size_t bytes = count * sizeof(float) * blocks();
    std::vector<Setting> all;
    if (bytes <= kMailbox) {
      all.push_back({.way = Way::Mailbox});
      if (ranks_ == 2 && bytes > kLineBytes) all.push_back({.way = Way::Mailbox, .claims = true});
    }
    // Streamed blocks begin at a line.
    const bool may_stream_output = is_sum() || count % kLineFloats == 0;
    if (is_mapped()) {
      for (const bool streams : {false, true})
        if (may_stream_output || !streams) all.push_back({.way = Way::Mapped, .streams_output = streams});
      return all;
    }
    for (const size_t chunk : kChunks) {
      if (chunk > kChunks[0] && chunk / 2 >= bytes) continue;  // as the one before
      for (int bits = 0; bits < 8; ++bits) {
        const bool stage = bits & 1, output = bits & 2, claims = bits & 4;
        if ((output && !may_stream_output) || (claims && stage)) continue;  // the second is never the best
        all.push_back({Way::Staged, chunk, stage, false, output, claims});
      }
    }
    return all;
  }

  void call(const Setting& setting, const float* send, float* recv, size_t count) override {
    switch (setting.way) {
      case Way::Mailbox: mailbox(setting, send, recv, count); break;
      case Way::Mapped: fetched(setting, send, recv, count); break;
      default: exchanged(setting, send, recv, count);
    }
  }

 private:
  bool is_sum() const { return kind_ == Kind::ReduceScatter; }
  // Of `count` elements each, in an input.
  size_t blocks() const { return kind_ == Kind::Allgather ? 1 : ranks_; }
  size_t block(size_t rank, size_t count) const { return kind_ == Kind::Allgather ? 0 : rank * count; }

  // Takes `length` elements from `place` on of each block for this rank. `of_rank`: where those of another one are.
  template <typename OfRank>
  void take(const float* send, float* recv, size_t count, size_t place, size_t length, bool streams, bool claims,
            const OfRank& of_rank) {
    if (!is_sum()) {
      for (size_t distance = 1; distance < ranks_; ++distance) {
        const size_t from = other(distance);
        copy(of_rank(from), {recv + from * count + place, streams}, length, claims);
      }
      return;
    }
    own_source_ = send + block(own_, count) + place;
    sources_.assign(1, own_source_);
    for (size_t distance = 1; distance < ranks_; ++distance) sources_.push_back(of_rank(other(distance)));
    sum(sources_, {{recv + place, streams}}, length, claims);
  }

  // The part of the own block that nobody waits for.
  void keep(const float* send, float* recv, size_t count, size_t place, size_t length, bool streams) {
    if (!is_sum()) copy(send + block(own_, count) + place, {recv + own_ * count + place, streams}, length);
  }

  void mailbox(const Setting& setting, const float* send, float* recv, size_t count) {
    const size_t bank = ++mails_ % 2;
    const size_t others = kind_ == Kind::Allgather ? 1 : ranks_ - 1;  // blocks in a mail, by distance
    const bool fits = others * count * sizeof(float) <= sizeof(Mail::head);
    const auto data = [&](size_t rank, size_t distance) {
      Mail& mail = shared_[rank].mail[bank];
      return reinterpret_cast<float*>(fits ? mail.head : mail.body) + (others > 1 ? (distance - 1) * count : 0);
    };
    for (size_t distance = 1; distance <= others; ++distance) {
      std::memcpy(data(own_, distance), send + block(other(distance), count), count * sizeof(float));
    }
    shared_[own_].mail[bank].number.store(mails_, std::memory_order_release);
    keep(send, recv, count, 0, count, false);
    for (size_t distance = 1; distance < ranks_; ++distance) {
      await(shared_[other(distance)].mail[bank].number, mails_);
    }
    take(send, recv, count, 0, count, false, setting.claims && !fits,
         [&](size_t from) { return data(from, (own_ + ranks_ - from) % ranks_); });
  }

  void exchanged(const Setting& setting, const float* send, float* recv, size_t count) {
    const size_t piece = std::max(kLineFloats, setting.chunk / sizeof(float) / blocks() / kLineFloats * kLineFloats);
    const size_t pieces = (count + piece - 1) / piece;
    const auto length = [&](size_t p) { return std::min(piece, count - p * piece); };
    const auto stage = [&](size_t rank, size_t target, size_t p) {
      return shared_[rank].stage[(first_ + p) % 2] + block(target, piece);
    };
    const auto give = [&](size_t p) {
      for (size_t distance = 1; distance <= (blocks() > 1 ? ranks_ - 1 : 1); ++distance) {
        const size_t to = other(distance);
        copy(send + block(to, count) + p * piece, {stage(own_, to, p), setting.streams_stage}, length(p));
      }
      if (setting.streams_stage) finish_streams();
    };
    // A bank is written again two pieces later, of the next call too: whoever reads it has arrived since.
    give(0);
    for (size_t p = 0; p < pieces; ++p) {
      arrive();
      keep(send, recv, count, p * piece, length(p), setting.streams_output);
      await_all();
      if (p + 1 < pieces) give(p + 1);
      take(send, recv, count, p * piece, length(p), setting.streams_output, setting.claims && ranks_ == 2,
           [&](size_t from) { return stage(from, own_, p); });
    }
    first_ += pieces;
    if (setting.streams_output) finish_streams();
  }

  void fetched(const Setting& setting, const float* send, float* recv, size_t count) {
    arrive();
    keep(send, recv, count, 0, count, setting.streams_output);
    await_all();
    take(send, recv, count, 0, count, setting.streams_output, false,
         [&](size_t from) { return of(from, send) + block(own_, count); });
    if (setting.streams_output) finish_streams();
    barrier();
  }

  const Kind kind_;
  uint32_t mails_ = 0;
  size_t first_ = 0;  // bank of the next exchange
};

}  // namespace limit
