// SPDX-License-Identifier: Apache-2.0
//
// Allreduce and reduce over hosts whose sums cross between hosts in another type than the call's: as blocks of 8-bit
// numbers with a scale (kernels/scaled_blocks.h), or, of narrow floats, as float32, so that the total is rounded once.
//
//   allreduce   [inside: the host's sum of each slice] [across: allreduce] [owners: convert] [inside: allgather]
//   reduce      the same, across: reduce, and at the root's host: convert, gather
//
// Narrow inputs are widened first, so that hosts' sums are float32. A host of one rank sums nothing. All ranks convert
// the same sums, hence equal bits.
//
// Blocks: owners encode before they cross, and every slice is combined at one place in one step (Level of
// Pattern::Direct, or OneShot), so that a number is encoded at most twice: by its host, and as the sum. Bytes of a host
// across: for n elements 68/64 n each way and pass, instead of 4 n. Source: two encodings per value as by the quantised
// reduce-scatter of Wang et al., ZeRO++, 2023, with the sum encoded too.
//
// Float32: any algorithm serves across, in any number of steps. 4 n bytes each way and pass for n elements, 2 or 4
// times those of narrow types. Where contributions cross unsummed ("hierarchical_direct") it is (g+1)/2 times.
#include "algorithms/hierarchical_author.h"
#include "base/assert.h"

namespace ccom {
namespace {

class TypedAuthor final : public ProgramAuthor {
 public:
  using ProgramAuthor::ProgramAuthor;

  Program write() {
    program_.slices = static_cast<uint32_t>(owners_);
    program_.scratch_slots = total_slot() + 1;
    if (shape_.widens) widen(for_slices([](uint32_t s) { return in(s, s); }));
    const size_t before = program_.stages.size();
    sum_inside([&](size_t host) { return sums(host); }, for_slices([&](uint32_t s) { return own_at(s); }), sum_slot());
    set_type_since(before, summed_type());
    if (encodes()) {
      convert(summed_type(), shape_.wire, everywhere, [&](size_t host, size_t owner) -> Lists {
        return {list({sum_at(host, slice_of(owner))}), list({total_at(slice_of(owner))})};
      });
    }
    program_.collective == Collective::AllReduce ? finish_allreduce() : finish_reduce();
    return std::move(program_);
  }

 private:
  // Slots: a rank's own slices if they are widened, the host's sum of the owner's slice, what crosses of it.
  uint32_t sum_slot() const { return shape_.widens ? slices() : 0; }
  uint32_t total_slot() const { return sum_slot() + 1; }
  UnitType summed_type() const { return shape_.widens ? UnitType::Float32 : UnitType::Call; }
  bool encodes() const { return shape_.wire != summed_type(); }
  static uint32_t slice_of(size_t owner) { return static_cast<uint32_t>(owner); }
  BlockAt own_at(uint32_t slice) const { return shape_.widens ? slot(slice, slice) : in(slice, slice); }
  bool sums(size_t host) const { return hosts_[host].size() > 1; }
  BlockAt sum_at(size_t host, uint32_t slice) const { return sums(host) ? slot(slice, sum_slot()) : own_at(slice); }
  BlockAt total_at(uint32_t slice) const { return slot(slice, total_slot()); }
  uint32_t crossing(size_t host, size_t owner) {
    return list({encodes() ? total_at(slice_of(owner)) : sum_at(host, slice_of(owner))});
  }

  void finish_allreduce() {
    across(Collective::AllReduce, true, [&](size_t host, size_t owner) -> Lists {
      return {crossing(host, owner), list({total_at(slice_of(owner))})};
    });
    set_type_since(program_.stages.size() - 1, shape_.wire);
    convert(shape_.wire, UnitType::Call, everywhere, [&](size_t, size_t owner) -> Lists {
      return {list({total_at(slice_of(owner))}), list({out(slice_of(owner), slice_of(owner))})};
    });
    spread_inside([&](size_t host) { return sums(host); });
  }

  // The slots of the host's sums are free again after the crossing.
  void finish_reduce() {
    across(Collective::Reduce, true, [&](size_t host, size_t owner) -> Lists {
      return {crossing(host, owner), host == root_host_ ? list({total_at(slice_of(owner))}) : nothing_};
    });
    set_type_since(program_.stages.size() - 1, shape_.wire);
    convert(
        shape_.wire, UnitType::Call, [&](size_t host) { return host == root_host_; },
        [&](size_t host, size_t owner) -> Lists {
          const uint32_t slice = slice_of(owner);
          const bool at_root = is_root(host, owner_at(host, owner));
          return {list({total_at(slice)}), list({at_root ? out(slice, slice) : slot(slice, sum_slot())})};
        });
    gather_at_root(sum_slot());
  }
};

}  // namespace

Program hierarchical_typed_program(Collective collective, Rank root, const HierarchicalShape& shape) {
  CCOM_ASSERT(shape.hosts.size() > 1 && shape.wire != UnitType::Call);
  CCOM_ASSERT(is_block(shape.wire) ? collective == Collective::AllReduce : shape.widens);
  return TypedAuthor(collective, root, shape).write();
}

}  // namespace ccom
