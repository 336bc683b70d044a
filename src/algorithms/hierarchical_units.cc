// SPDX-License-Identifier: Apache-2.0
//
// Programs over hosts for the collectives whose units belong to ranks.
#include "algorithms/hierarchical_author.h"
#include "base/assert.h"

namespace ccom {
namespace {

class UnitAuthor final : public ProgramAuthor {
 public:
  using ProgramAuthor::ProgramAuthor;

  Program write() {
    switch (program_.collective) {
      case Collective::ReduceScatter: write_reduce_scatter(); break;
      case Collective::AllGather: write_allgather(); break;
      case Collective::AllToAll: write_alltoall(); break;
      case Collective::Gather: write_gather(); break;
      default: write_scatter(); break;
    }
    return std::move(program_);
  }

 private:
  List all_units(Buffer buffer) const {
    List all;
    for (uint32_t unit = 0; unit < static_cast<uint32_t>(program_.nranks); ++unit) all.push_back({unit, buffer, unit});
    return all;
  }
  // In the slots from `first` on; `skipped` first ones left out.
  static List in_slots(const std::vector<uint32_t>& units, uint32_t first, size_t skipped = 0) {
    List list;
    for (size_t i = skipped; i < units.size(); ++i) {
      list.push_back(slot(units[i], first + static_cast<uint32_t>(i - skipped)));
    }
    return list;
  }

  // Where sums cross as float32, own units are widened to the first slots, and what an owner gets is converted: to its
  // output, and for the ranks behind it to the slots of its host's sums, which are free again.
  void write_reduce_scatter() {
    const bool widens = shape_.wire != UnitType::Call;
    CCOM_ASSERT(shape_.wire == UnitType::Call || (shape_.wire == UnitType::Float32 && shape_.widens));
    const uint32_t first = widens ? static_cast<uint32_t>(program_.nranks) : 0;
    uint32_t returned = first;  // slots for what comes back, after those of a host's sums
    for (size_t owner = 0; owner < owners_; ++owner)
      returned = std::max(returned, first + static_cast<uint32_t>(carried_for_all(owner).size()));
    const auto most_carried = static_cast<uint32_t>((largest(hosts_) + owners_ - 1) / owners_);
    program_.scratch_slots = returned + most_carried - (widens ? 0 : 1);
    List own = all_units(Buffer::Input);
    if (widens) {
      widen(own);
      for (BlockAt& at : own) at.buffer = Buffer::Scratch;
    }
    const uint32_t all = list(std::move(own));
    const size_t before = program_.stages.size();
    inside(Collective::ReduceScatter, shape_.reduce_inside, true, everywhere, [&](size_t, size_t local) -> Lists {
      return {all, local < owners_ ? list(in_slots(carried_for_all(local), first)) : nothing_};
    });
    across(Collective::ReduceScatter, true, [&](size_t host, size_t owner) -> Lists {
      const uint32_t gives = list(in_slots(carried_for_all(owner), first));
      if (widens) return {gives, list(in_slots(carried(host, owner), returned))};
      return {gives, list(own_and_in_slots(host, owner, returned))};
    });
    if (widens) {
      set_type_since(before, UnitType::Float32);
      convert(UnitType::Float32, UnitType::Call, everywhere, [&](size_t host, size_t owner) -> Lists {
        return {list(in_slots(carried(host, owner), returned)), list(own_and_in_slots(host, owner, first))};
      });
    }
    inside(
        Collective::Scatter, shape_.spread_inside, false, [&](size_t host) { return has_more_ranks(host); },
        [&](size_t host, size_t local) -> Lists {
          if (local >= owners_) return {nothing_, list({out(unit_of(host, local), 0)})};
          return {list(in_slots(carried(host, local), widens ? first : returned, 1)), nothing_};
        });
  }

  // An owner's unit in its output, those that it carries for others in the slots from `first` on.
  List own_and_in_slots(size_t host, size_t owner, uint32_t first) const {
    List units = in_slots(carried(host, owner), first, 1);
    units.insert(units.begin(), out(unit_of(host, owner), 0));
    return units;
  }

  void write_allgather() {
    inside(
        Collective::Gather, shape_.spread_inside, false, [&](size_t host) { return has_more_ranks(host); },
        [&](size_t host, size_t local) -> Lists {
          if (local >= owners_) return {list({in(unit_of(host, local), 0)}), nothing_};
          List gets = in_output(carried(host, local));
          gets.erase(gets.begin());
          return {nothing_, list(std::move(gets))};
        });
    across(Collective::AllGather, false, [&](size_t host, size_t owner) -> Lists {
      List gives = in_output(carried(host, owner));
      gives[0] = in(unit_of(host, owner), 0);
      List gets;
      for (size_t other = 0; other < hosts_.size(); ++other) {
        for (const uint32_t unit : carried(other, owner)) {
          if (other != host || unit == unit_of(host, owner)) gets.push_back(out(unit, unit));
        }
      }
      return {list(std::move(gives)), list(std::move(gets))};
    });
    share_outputs();
  }

  // Inside, everybody collects what its host has for the ranks with its local rank; across, a host's worth to each.
  void write_alltoall() {
    const auto n = static_cast<uint32_t>(program_.nranks);
    const auto per_host = static_cast<uint32_t>(hosts_[0].size());
    CCOM_ASSERT(owners_ == per_host && largest(hosts_) == per_host);
    program_.scratch_slots = n;
    const auto collected = [&](size_t host, size_t local) {
      List blocks;
      for (size_t to = 0; to < hosts_.size(); ++to) {
        for (uint32_t from = 0; from < per_host; ++from) {
          blocks.push_back(slot(unit_of(host, from) * n + unit_of(to, local), static_cast<uint32_t>(blocks.size())));
        }
      }
      return list(std::move(blocks));
    };
    inside(Collective::AllToAll, shape_.spread_inside, false, everywhere, [&](size_t host, size_t local) -> Lists {
      List gives;
      for (uint32_t to = 0; to < n; ++to) gives.push_back(in(unit_of(host, local) * n + to, to));
      return {list(std::move(gives)), collected(host, local)};
    });
    across(Collective::AllToAll, false, [&](size_t host, size_t owner) -> Lists {
      List gets;
      for (uint32_t from = 0; from < n; ++from) gets.push_back(out(from * n + unit_of(host, owner), from));
      return {collected(host, owner), list(std::move(gets))};
    });
  }

  // One owner of each host has its host's units in slots by local rank; the root has all units in its buffer.
  List held(size_t host, bool in_root_buffer, Buffer root_buffer) const {
    List units;
    for (size_t local = 0; local < hosts_[host].size(); ++local) {
      const uint32_t unit = unit_of(host, local);
      units.push_back(in_root_buffer ? BlockAt{unit, root_buffer, unit} : slot(unit, static_cast<uint32_t>(local)));
    }
    return units;
  }

  void write_gather() {
    program_.scratch_slots = static_cast<uint32_t>(largest(hosts_));
    inside(Collective::Gather, shape_.spread_inside, false, everywhere, [&](size_t host, size_t local) -> Lists {
      return {list({in(unit_of(host, local), 0)}),
              owns(host, local) ? list(held(host, is_root(host, local), Buffer::Output)) : nothing_};
    });
    across(Collective::Gather, false, [&](size_t host, size_t) -> Lists {
      if (host != root_host_) return {list(held(host, false, Buffer::Output)), nothing_};
      List gets;
      for (size_t other = 0; other < hosts_.size(); ++other) {
        if (other != host) std::ranges::copy(held(other, true, Buffer::Output), std::back_inserter(gets));
      }
      return {nothing_, list(std::move(gets))};
    });
  }

  void write_scatter() {
    program_.scratch_slots = static_cast<uint32_t>(largest(hosts_));
    across(Collective::Scatter, false, [&](size_t host, size_t) -> Lists {
      if (host != root_host_) return {nothing_, list(held(host, false, Buffer::Input))};
      List gives;
      for (size_t other = 0; other < hosts_.size(); ++other) {
        if (other != host) std::ranges::copy(held(other, true, Buffer::Input), std::back_inserter(gives));
      }
      return {list(std::move(gives)), nothing_};
    });
    inside(Collective::Scatter, shape_.spread_inside, false, everywhere, [&](size_t host, size_t local) -> Lists {
      return {owns(host, local) ? list(held(host, is_root(host, local), Buffer::Input)) : nothing_,
              list({out(unit_of(host, local), 0)})};
    });
  }
};

}  // namespace

Program hierarchical_unit_program(Collective collective, Rank root, const HierarchicalShape& shape) {
  return UnitAuthor(collective, root, shape).write();
}

}  // namespace ccom
