// SPDX-License-Identifier: Apache-2.0
//
// Allreduce over hosts whose sums cross between hosts as blocks of 8-bit numbers with a scale
// (kernels/scaled_blocks.h).
//
//   [inside: the host's sum of each slice, in float32] [owners: encode] [across: allreduce of blocks]
//   [owners: decode] [inside: allgather]
//
// Narrow inputs are widened first, so that hosts' sums are float32. A host of one rank sums nothing. Across, every
// slice is combined at one place in one step (Level of Pattern::Direct, or OneShot), so that a number is encoded at
// most twice: by its host, and as the sum. All ranks decode the same blocks, hence equal bits.
//
// Bytes of a host across: for n elements 68/64 n each way and pass, instead of 4 n. Two roundings to 8 bits. Source:
// two encodings per value as by the quantised reduce-scatter of Wang et al., ZeRO++, 2023, with the sum encoded too.
#include "algorithms/hierarchical_author.h"
#include "base/assert.h"

namespace ccom {
namespace {

class NarrowAuthor final : public ProgramAuthor {
 public:
  using ProgramAuthor::ProgramAuthor;

  Program write() {
    program_.slices = static_cast<uint32_t>(owners_);
    program_.scratch_slots = blocks_slot() + 1;
    if (shape_.widens) widen();
    const size_t before = program_.stages.size();
    sum_inside([&](size_t host) { return sums(host); }, for_slices([&](uint32_t s) { return own_at(s); }), sum_slot());
    set_type_since(before, summed_type());
    convert(summed_type(), shape_.wire,
            [&](size_t host, uint32_t slice) { return std::pair(sum_at(host, slice), slot(slice, blocks_slot())); });
    across(Collective::AllReduce, true, [&](size_t, size_t owner) -> Lists {
      const auto slice = static_cast<uint32_t>(owner);
      const uint32_t blocks = list({slot(slice, blocks_slot())});
      return {blocks, blocks};
    });
    set_type_since(program_.stages.size() - 1, shape_.wire);
    convert(shape_.wire, UnitType::Call,
            [&](size_t, uint32_t slice) { return std::pair(slot(slice, blocks_slot()), out(slice, slice)); });
    spread_inside([&](size_t host) { return sums(host); });
    return std::move(program_);
  }

 private:
  // Slots: a rank's own slices if they are widened, the host's sum of the owner's slice, the slice in blocks.
  uint32_t sum_slot() const { return shape_.widens ? slices() : 0; }
  uint32_t blocks_slot() const { return sum_slot() + 1; }
  UnitType summed_type() const { return shape_.widens ? UnitType::Float32 : UnitType::Call; }
  BlockAt own_at(uint32_t slice) const { return shape_.widens ? slot(slice, slice) : in(slice, slice); }
  bool sums(size_t host) const { return hosts_[host].size() > 1; }
  BlockAt sum_at(size_t host, uint32_t slice) const { return sums(host) ? slot(slice, sum_slot()) : own_at(slice); }

  void set_type_since(size_t first, UnitType type) {
    for (size_t i = first; i < program_.stages.size(); ++i)
      program_.stages[i].gives_type = program_.stages[i].gets_type = type;
  }
  Stage& alone(UnitType from, UnitType to) {
    return program_.stages.emplace_back(
        Stage{.where = Stage::Where::Host, .collective = Collective::AllGather, .gives_type = from, .gets_type = to});
  }

  void widen() {
    Stage& stage = alone(UnitType::Call, UnitType::Float32);
    const uint32_t gives = list(for_slices([](uint32_t s) { return in(s, s); }));
    const uint32_t gets = list(for_slices([](uint32_t s) { return slot(s, s); }));
    for (const std::vector<Rank>& host : hosts_) {
      for (const Rank rank : host) stage.groups.push_back({{rank, gives, gets}});
    }
  }

  // Of every owner's slice; places_of(host, slice) says from where to where.
  template <typename PlacesOf>
  void convert(UnitType from, UnitType to, PlacesOf places_of) {
    Stage& stage = alone(from, to);
    for (size_t host = 0; host < hosts_.size(); ++host) {
      for (size_t owner = 0; owner < owners_; ++owner) {
        const auto [source, target] = places_of(host, static_cast<uint32_t>(owner));
        stage.groups.push_back({{hosts_[host][owner_at(host, owner)], list({source}), list({target})}});
      }
    }
  }
};

}  // namespace

Program hierarchical_narrow_program(const HierarchicalShape& shape) {
  CCOM_ASSERT(is_block(shape.wire) && shape.hosts.size() > 1);
  return NarrowAuthor(Collective::AllReduce, -1, shape).write();
}

}  // namespace ccom
