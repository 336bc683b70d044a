// SPDX-License-Identifier: Apache-2.0
//
// What each collective reads and writes: one table for all rooms, and what follows from it.
//
// A call's `count` elements are one unit. A buffer that takes part holds one unit, or one for each rank in rank order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/types.h"

namespace ccom {

// Whose buffer takes part.
enum class BufferRanks : uint8_t {
  Every,
  Root,
  OneEnd,  // of a message: the sender's input, the receiver's output
};

enum class BufferUnits : uint8_t { One, PerRank };

struct BufferTraits {
  BufferRanks ranks;
  BufferUnits units;
};

struct CollectiveTraits {
  Collective collective;
  std::string_view name;
  bool reduces;
  BufferTraits input, output;
};

// By the value of Collective. A barrier is an allgather of units without elements.
inline constexpr std::array kCollectiveTraits = [] {
  using enum BufferRanks;
  using enum BufferUnits;
  return std::array{
      CollectiveTraits{Collective::AllReduce, "allreduce", true, {Every, One}, {Every, One}},
      CollectiveTraits{Collective::AllGather, "allgather", false, {Every, One}, {Every, PerRank}},
      CollectiveTraits{Collective::ReduceScatter, "reduce_scatter", true, {Every, PerRank}, {Every, One}},
      CollectiveTraits{Collective::Broadcast, "broadcast", false, {Root, One}, {Every, One}},
      CollectiveTraits{Collective::Reduce, "reduce", true, {Every, One}, {Root, One}},
      CollectiveTraits{Collective::AllToAll, "alltoall", false, {Every, PerRank}, {Every, PerRank}},
      CollectiveTraits{Collective::Gather, "gather", false, {Every, One}, {Root, PerRank}},
      CollectiveTraits{Collective::Scatter, "scatter", false, {Root, PerRank}, {Every, One}},
      CollectiveTraits{Collective::Barrier, "barrier", false, {Every, One}, {Every, PerRank}},
      CollectiveTraits{Collective::SendReceive, "sendrecv", false, {OneEnd, One}, {OneEnd, One}},
  };
}();

constexpr const CollectiveTraits& traits_of(Collective collective) {
  return kCollectiveTraits[static_cast<size_t>(collective)];
}

constexpr bool reduces(Collective collective) { return traits_of(collective).reduces; }

constexpr bool only_root_reads(Collective collective) { return traits_of(collective).input.ranks == BufferRanks::Root; }
constexpr bool only_root_writes(Collective collective) {
  return traits_of(collective).output.ranks == BufferRanks::Root;
}
constexpr bool is_rooted(Collective collective) { return only_root_reads(collective) || only_root_writes(collective); }

constexpr bool input_is_per_rank(Collective collective) {
  return traits_of(collective).input.units == BufferUnits::PerRank;
}
constexpr bool output_is_per_rank(Collective collective) {
  return traits_of(collective).output.units == BufferUnits::PerRank;
}
// Are its data units that belong to ranks, rather than one vector?
constexpr bool is_per_rank(Collective collective) {
  return input_is_per_rank(collective) || output_is_per_rank(collective);
}

// Units of a buffer where it takes part.
constexpr uint32_t units_of(const BufferTraits& buffer, int nranks) {
  return buffer.units == BufferUnits::PerRank ? static_cast<uint32_t>(nranks) : 1;
}

// Units that a rank's input and output hold; 0: it takes no part. (A message's, at its end.)
constexpr uint32_t input_units(Collective collective, int nranks, bool is_root) {
  return only_root_reads(collective) && !is_root ? 0 : units_of(traits_of(collective).input, nranks);
}
constexpr uint32_t output_units(Collective collective, int nranks, bool is_root) {
  return only_root_writes(collective) && !is_root ? 0 : units_of(traits_of(collective).output, nranks);
}
// Of the largest buffer involved: what a call's size is measured by.
constexpr uint32_t largest_units(Collective collective, int nranks) {
  return is_per_rank(collective) ? static_cast<uint32_t>(nranks) : 1;
}
// Of all inputs and outputs of all ranks.
constexpr uint64_t total_units(Collective collective, int nranks) {
  const auto total = [nranks](const BufferTraits& buffer) {
    const uint64_t holders = buffer.ranks == BufferRanks::Every ? static_cast<uint64_t>(nranks) : 1;
    return holders * units_of(buffer, nranks);
  };
  return total(traits_of(collective).input) + total(traits_of(collective).output);
}

// The data of a call are numbered over all ranks: the vector is item 0, units are items by rank, those of an all-to-all
// by sender, then receiver. An input unit contributes to one item, an output unit holds one.
constexpr uint64_t input_item(Collective collective, int nranks, Rank rank, uint32_t unit) {
  const uint64_t first = output_is_per_rank(collective) ? static_cast<uint64_t>(rank) : 0;
  return first * units_of(traits_of(collective).input, nranks) + unit;
}
constexpr uint64_t output_item(Collective collective, int nranks, Rank rank, uint32_t unit) {
  if (!input_is_per_rank(collective)) return unit;
  return uint64_t{unit} * static_cast<uint64_t>(nranks) + static_cast<uint64_t>(rank);
}
// Of what is not a sum: whose input holds the item.
constexpr Rank source_of(Collective collective, int nranks, Rank root, uint64_t item) {
  return only_root_reads(collective) ? root : static_cast<Rank>(item / units_of(traits_of(collective).input, nranks));
}
constexpr uint64_t items_of(Collective collective, int nranks) {
  return uint64_t{units_of(traits_of(collective).input, nranks)} * units_of(traits_of(collective).output, nranks);
}

// In place a rank's smaller buffer is its own unit of the larger one; buffers of equal size are the same.
constexpr bool has_in_place(Collective collective) {
  return collective != Collective::Barrier && collective != Collective::SendReceive;
}
// In place, where input unit 0 lies among the output's units. Below 0: output unit 0 lies that far into the input.
constexpr int64_t in_place_shift(Collective collective, Rank rank) {
  return int64_t{rank} * (int{output_is_per_rank(collective)} - int{input_is_per_rank(collective)});
}

// What a call uses of a rank's buffers, and how they lie in place.
struct BufferUse {
  size_t input_bytes = 0, output_bytes = 0;
  bool has_in_place = false;        // only where both buffers take part
  uintptr_t in_place_distance = 0;  // from the output to the input

  bool is_in_place(const void* input, const void* output) const {
    return has_in_place &&
           reinterpret_cast<uintptr_t>(input) - reinterpret_cast<uintptr_t>(output) == in_place_distance;
  }
  // Whether they have no byte in common, or lie in place.
  bool is_legal(const void* input, const void* output) const {
    const auto from = reinterpret_cast<uintptr_t>(input), to = reinterpret_cast<uintptr_t>(output);
    return from + input_bytes <= to || to + output_bytes <= from || input_bytes == 0 || output_bytes == 0 ||
           is_in_place(input, output);
  }
};
constexpr BufferUse buffer_use(Collective collective, Rank rank, int nranks, Rank root, size_t unit_bytes) {
  const bool is_root = rank == root;
  return {.input_bytes = input_units(collective, nranks, is_root) * unit_bytes,
          .output_bytes = output_units(collective, nranks, is_root) * unit_bytes,
          .has_in_place = has_in_place(collective) && (is_root || !is_rooted(collective)),
          .in_place_distance = static_cast<uintptr_t>(in_place_shift(collective, rank)) * unit_bytes};
}

// busbw / algbw: what makes the rate comparable with that of a link, whatever the number of ranks. algbw is measured by
// largest_units(). Source: nccl-tests, PERFORMANCE.md.
constexpr double busbw_factor(Collective collective, int nranks) {
  const double others = (nranks - 1.0) / nranks;
  switch (collective) {
    case Collective::AllReduce: return 2 * others;
    case Collective::Barrier: return 0;
    default: return is_per_rank(collective) ? others : 1;
  }
}

static_assert(std::ranges::all_of(kCollectiveTraits, [](const CollectiveTraits& traits) {
  return traits_of(traits.collective).name == traits.name;
}));

}  // namespace ccom
