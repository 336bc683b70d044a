// SPDX-License-Identifier: Apache-2.0
//
// Broadcast of float32 from rank 0, in place, through shared memory. Every other rank has to read the root's data and
// to store them; between private pages the root has to copy them to memory that the others map first. That, and the
// flags that say that data are there or have been read, is all that these do. The root waits for nobody until its banks
// are full, so in calls back to back it may be ahead of its readers, as that of any library may.
//
//   mailbox  the data beside their flag in a line, one line per bank
//   staged   piece by piece to the next bank of staging memory; a count of what was given, and one of each reader of
//            what it has taken
//   mapped   the readers copy from the root's buffer, which waits for them
//   shared   barrier; every rank, the root as well, copies a part of the root's buffer to those of all readers; barrier
#pragma once

#include "limit_collective.h"

namespace limit {

class Broadcast final : public Collective {
 public:
  using Collective::Collective;

  std::vector<Setting> settings(size_t count) const override {
    const size_t bytes = count * sizeof(float);
    std::vector<Setting> all;
    if (is_mapped()) {
      for (const Way way : {Way::Mapped, Way::Shared}) {
        for (const bool streams : {false, true}) all.push_back({.way = way, .streams_output = streams});
      }
      if (bytes > kMailbox) return all;
    }
    for (size_t banks = 2; banks <= kMostBanks; banks *= 4) {
      if (bytes <= sizeof(Letter::data)) all.push_back({.way = Way::Mailbox, .banks = banks});
      for (const size_t most : kChunks) {
        if (most > kChunks[0] && most / 2 >= bytes) continue;  // as the one before
        const size_t chunk = std::min(most, (bytes + kLineBytes - 1) / kLineBytes * kLineBytes);
        if (banks * chunk > sizeof(Rank::stage)) continue;
        for (int bits = 0; bits < 8; ++bits) {
          const bool stage = bits & 1, output = bits & 2, claims = bits & 4;
          if (claims && (stage || ranks_ > 2)) continue;  // several read each line
          all.push_back({Way::Staged, chunk, stage, false, output, claims, banks});
        }
      }
    }
    return all;
  }

  void call(const Setting& setting, const float*, float* data, size_t count) override {
    switch (setting.way) {
      case Way::Mailbox: posted(setting, data, count); break;
      case Way::Mapped: fetched(setting, data, count); break;
      case Way::Shared: shared(setting, data, count); break;
      default: staged(setting, data, count);
    }
  }

 private:
  bool is_root() const { return own_ == 0; }

  // Until all have taken this many pieces.
  void await_readers(uint32_t number) {
    if (static_cast<int32_t>(seen_ - number) >= 0) return;
    seen_ = pieces_;
    for (size_t rank = 1; rank < ranks_; ++rank) seen_ = std::min(seen_, await(shared_[rank].taken, number));
  }
  // The root may write to the bank of the piece at hand.
  void await_bank(const Setting& setting) { await_readers(pieces_ - static_cast<uint32_t>(setting.banks)); }
  void give() { shared_[own_].given.store(pieces_, std::memory_order_release); }
  void take() { shared_[own_].taken.store(pieces_, std::memory_order_release); }

  void posted(const Setting& setting, float* data, size_t count) {
    ++pieces_;
    Letter& letter = shared_[0].letters[pieces_ % setting.banks];
    if (is_root()) {
      await_bank(setting);
      std::memcpy(letter.data, data, count * sizeof(float));
      letter.number.store(pieces_, std::memory_order_release);
    } else {
      await(letter.number, pieces_);
      std::memcpy(data, letter.data, count * sizeof(float));
      take();
    }
  }

  void staged(const Setting& setting, float* data, size_t count) {
    const size_t chunk = setting.chunk / sizeof(float);
    for (size_t begin = 0; begin < count; begin += chunk) {
      const size_t length = std::min(chunk, count - begin);
      float* const bank = shared_[0].stage[0] + ++pieces_ % setting.banks * chunk;
      if (is_root()) {
        await_bank(setting);
        copy(data + begin, {bank, setting.streams_stage}, length);
        if (setting.streams_stage) finish_streams();
        give();
      } else {
        await(shared_[0].given, pieces_);
        copy(bank, {data + begin, setting.streams_output}, length, setting.claims);
        take();
      }
    }
    if (setting.streams_output) finish_streams();
  }

  void fetched(const Setting& setting, float* data, size_t count) {
    ++pieces_;
    if (is_root()) {
      give();
      await_readers(pieces_);
      return;
    }
    await(shared_[0].given, pieces_);
    copy(of(0, data), {data, setting.streams_output}, count);
    if (setting.streams_output) finish_streams();
    take();
  }

  void shared(const Setting& setting, float* data, size_t count) {
    const Part part = part_of(own_, count);
    barrier();
    std::array<Target, kMostRanks> to;
    for (size_t rank = 1; rank < ranks_; ++rank) {
      to[rank - 1] = {of(rank, data) + part.begin, setting.streams_output};
    }
    sources_.assign(1, of(0, data) + part.begin);
    add_lines(sources_.data(), 1, to.data(), ranks_ - 1, part.count);
    if (setting.streams_output) finish_streams();
    barrier();
  }

  uint32_t pieces_ = 0;  // given, or taken
  uint32_t seen_ = 0;    // that all have taken, as far as the root knows
};

}  // namespace limit
