// SPDX-License-Identifier: Apache-2.0
#include "algorithms/hierarchical.h"

#include <algorithm>

#include "base/assert.h"

namespace ccom {
namespace {

using List = std::vector<BlockAt>;

size_t smallest(const HostRanks& hosts) {
  return std::ranges::min(hosts, {}, &std::vector<Rank>::size).size();
}
size_t largest(const HostRanks& hosts) {
  return std::ranges::max(hosts, {}, &std::vector<Rank>::size).size();
}

class Author {
 public:
  Author(Collective collective, Rank root, const HierarchicalShape& shape)
      : shape_(shape), hosts_(shape.hosts), owners_(static_cast<size_t>(shape.owners)) {
    program_.algorithm = shape.owners == 1 ? "hierarchical_leaders" : "hierarchical_sharded";
    program_.collective = collective;
    program_.root = root;
    program_.nranks = 0;
    for (size_t host = 0; host < hosts_.size(); ++host) {
      program_.nranks += static_cast<int>(hosts_[host].size());
      const auto found = std::ranges::find(hosts_[host], root);
      if (found == hosts_[host].end()) continue;
      root_host_ = host;
      root_local_ = static_cast<size_t>(found - hosts_[host].begin());
    }
    program_.tile_bytes = shape.tile_bytes;
    program_.lanes = shape.lanes;
    nothing_ = program_.add_list({});
  }

  Program write() {
    switch (program_.collective) {
      case Collective::AllReduce: write_allreduce(); break;
      case Collective::Reduce: write_reduce(); break;
      case Collective::Broadcast: write_broadcast(); break;
      case Collective::ReduceScatter: write_reduce_scatter(); break;
      case Collective::AllGather: write_allgather(); break;
      case Collective::AllToAll: write_alltoall(); break;
      case Collective::Gather: write_gather(); break;
      case Collective::Scatter: write_scatter(); break;
      default: write_barrier(); break;
    }
    return std::move(program_);
  }

 private:
  using Lists = std::pair<uint32_t, uint32_t>;  // gives, gets

  // Local rank of owner `owner` of a host.
  size_t owner_at(size_t host, size_t owner) const {
    return owners_ > 1 || program_.root < 0 ? owner : std::min(root_local_, hosts_[host].size() - 1);
  }
  bool owns(size_t host, size_t local) const {
    return owners_ > 1 ? local < owners_ : local == owner_at(host, 0);
  }
  bool is_root(size_t host, size_t local) const {
    return program_.root >= 0 && host == root_host_ && local == root_local_;
  }
  uint32_t list(List list) { return list.empty() ? nothing_ : program_.add_list(std::move(list)); }
  static BlockAt in(uint32_t block, uint32_t index) { return {block, Buffer::Input, index}; }
  static BlockAt out(uint32_t block, uint32_t index) { return {block, Buffer::Output, index}; }
  static BlockAt slot(uint32_t block, uint32_t index) { return {block, Buffer::Scratch, index}; }
  uint32_t slices() const { return program_.slices; }
  template <typename Fn>
  List for_slices(Fn at) const {
    List list;
    for (uint32_t slice = 0; slice < slices(); ++slice) list.push_back(at(slice));
    return list;
  }

  // A stage of all ranks of the hosts that `takes_part` says; lists_of(host, local).
  template <typename TakesPart, typename ListsOf>
  void inside(Collective collective, const NodeChoice& choice, bool sums, TakesPart takes_part, ListsOf lists_of) {
    Stage stage{.where = Stage::Where::Host, .collective = collective, .sums = sums, .node = choice};
    for (size_t host = 0; host < hosts_.size(); ++host) {
      if (!takes_part(host)) continue;
      std::vector<StageMember>& group = stage.groups.emplace_back();
      for (size_t local = 0; local < hosts_[host].size(); ++local) {
        const Lists lists = lists_of(host, local);
        group.push_back({hosts_[host][local], lists.first, lists.second});
      }
    }
    if (stage.groups.empty()) return;
    program_.stages.push_back(std::move(stage));
  }

  // A stage between hosts, a group for each owner; lists_of(host, owner).
  template <typename ListsOf>
  void across(Collective collective, bool sums, ListsOf lists_of) {
    const bool rooted = collective == Collective::Broadcast || collective == Collective::Reduce;
    Stage stage{.where = Stage::Where::Across,
                .collective = collective,
                .root = rooted ? static_cast<int>(root_host_) : -1,
                .sums = sums,
                .completes = sums,
                .messages = shape_.across};
    for (size_t owner = 0; owner < owners_; ++owner) {
      std::vector<StageMember>& group = stage.groups.emplace_back();
      for (size_t host = 0; host < hosts_.size(); ++host) {
        const Lists lists = lists_of(host, owner);
        group.push_back({hosts_[host][owner_at(host, owner)], lists.first, lists.second});
      }
    }
    program_.stages.push_back(std::move(stage));
  }

  static bool everywhere(size_t) { return true; }

  // ---- Vectors ------------------------------------------------------------------------------------------------------

  // The host's sum of each slice, in its owner's first slot.
  void sum_inside() {
    const uint32_t whole = list(for_slices([](uint32_t s) { return in(s, s); }));
    inside(owners_ > 1 ? Collective::ReduceScatter : Collective::Reduce, shape_.reduce_inside, true, everywhere,
           [&](size_t host, size_t local) -> Lists {
             const auto slice = static_cast<uint32_t>(owners_ > 1 ? local : 0);
             return {whole, owns(host, local) ? list({slot(slice, 0)}) : nothing_};
           });
  }

  // From the owners' outputs to all others'.
  template <typename TakesPart>
  void spread_inside(TakesPart takes_part) {
    inside(owners_ > 1 ? Collective::AllGather : Collective::Broadcast, shape_.spread_inside, false, takes_part,
           [&](size_t host, size_t local) -> Lists {
             const bool gives = owns(host, local);
             const auto own = static_cast<uint32_t>(owners_ > 1 ? local : 0);
             List gets = for_slices([](uint32_t s) { return out(s, s); });
             if (gives) std::erase(gets, out(own, own));
             return {gives ? list({out(own, own)}) : nothing_, list(std::move(gets))};
           });
  }

  void write_allreduce() {
    program_.slices = static_cast<uint32_t>(owners_);
    program_.scratch_slots = 1;
    sum_inside();
    across(Collective::AllReduce, true, [&](size_t, size_t owner) -> Lists {
      const auto slice = static_cast<uint32_t>(owner);
      return {list({slot(slice, 0)}), list({out(slice, slice)})};
    });
    spread_inside(everywhere);
  }

  void write_reduce() {
    program_.slices = static_cast<uint32_t>(owners_);
    program_.scratch_slots = 2;
    sum_inside();
    across(Collective::Reduce, true, [&](size_t host, size_t owner) -> Lists {
      const auto slice = static_cast<uint32_t>(owner);
      const bool at_root = is_root(host, owner_at(host, owner));
      const BlockAt target = at_root ? out(slice, slice) : slot(slice, 1);
      return {list({slot(slice, 0)}), host == root_host_ ? list({target}) : nothing_};
    });
    if (owners_ == 1) return;  // the root's own
    inside(Collective::Gather, shape_.spread_inside, false, [&](size_t host) { return host == root_host_; },
           [&](size_t host, size_t local) -> Lists {
             const bool at_root = is_root(host, local);
             const auto own = static_cast<uint32_t>(local);
             List gets = for_slices([](uint32_t s) { return out(s, s); });
             if (owns(host, local)) std::erase(gets, out(own, own));
             return {owns(host, local) && !at_root ? list({slot(own, 1)}) : nothing_,
                     at_root ? list(std::move(gets)) : nothing_};
           });
  }

  void write_broadcast() {
    program_.slices = static_cast<uint32_t>(owners_);
    const auto at_root_host = [&](size_t host) { return host == root_host_; };
    const auto elsewhere = [&](size_t host) { return host != root_host_; };
    const uint32_t given = list(for_slices([](uint32_t s) { return in(s, s); }));
    const uint32_t gotten = list(for_slices([](uint32_t s) { return out(s, s); }));
    if (owners_ > 1) {
      inside(Collective::Broadcast, shape_.spread_inside, false, at_root_host,
             [&](size_t host, size_t local) -> Lists { return {is_root(host, local) ? given : nothing_, gotten}; });
    }
    across(Collective::Broadcast, false, [&](size_t host, size_t owner) -> Lists {
      const auto slice = static_cast<uint32_t>(owner);
      if (host != root_host_) return {nothing_, list({out(slice, slice)})};
      const uint32_t own = list({owners_ > 1 ? out(slice, slice) : in(slice, slice)});
      return {own, own};
    });
    if (owners_ > 1) return spread_inside(elsewhere);
    inside(Collective::Broadcast, shape_.spread_inside, false, everywhere,
           [&](size_t host, size_t local) -> Lists {
             if (is_root(host, local)) return {given, gotten};
             return owns(host, local) ? Lists{gotten, nothing_} : Lists{nothing_, gotten};
           });
  }

  // ---- Units of ranks -----------------------------------------------------------------------------------------------

  // The units that travel through an owner of a host: its own first, then those of the local ranks behind the owners.
  std::vector<uint32_t> carried(size_t host, size_t owner) const {
    std::vector<uint32_t> units;
    for (size_t local = owner; local < hosts_[host].size(); local += owners_) {
      units.push_back(static_cast<uint32_t>(hosts_[host][local]));
    }
    return units;
  }
  std::vector<uint32_t> carried_for_all(size_t owner) const {
    std::vector<uint32_t> units;
    for (size_t host = 0; host < hosts_.size(); ++host) {
      for (const uint32_t unit : carried(host, owner)) units.push_back(unit);
    }
    return units;
  }
  bool has_more_ranks(size_t host) const { return hosts_[host].size() > owners_; }
  uint32_t unit_of(size_t host, size_t local) const { return static_cast<uint32_t>(hosts_[host][local]); }
  uint32_t all_units(Buffer buffer) {
    List all;
    for (uint32_t unit = 0; unit < static_cast<uint32_t>(program_.nranks); ++unit) all.push_back({unit, buffer, unit});
    return list(std::move(all));
  }
  // In the slots from `first` on; `skipped` first ones left out.
  static List in_slots(const std::vector<uint32_t>& units, uint32_t first, size_t skipped = 0) {
    List list;
    for (size_t i = skipped; i < units.size(); ++i) {
      list.push_back(slot(units[i], first + static_cast<uint32_t>(i - skipped)));
    }
    return list;
  }

  void write_reduce_scatter() {
    uint32_t sums = 0;  // slots for a host's sums, before those of what comes back
    for (size_t owner = 0; owner < owners_; ++owner) {
      sums = std::max(sums, static_cast<uint32_t>(carried_for_all(owner).size()));
    }
    program_.scratch_slots =
        sums + static_cast<uint32_t>((largest(hosts_) + owners_ - 1) / owners_ - 1);
    const uint32_t all = all_units(Buffer::Input);
    inside(Collective::ReduceScatter, shape_.reduce_inside, true, everywhere,
           [&](size_t, size_t local) -> Lists {
             return {all, local < owners_ ? list(in_slots(carried_for_all(local), 0)) : nothing_};
           });
    across(Collective::ReduceScatter, true, [&](size_t host, size_t owner) -> Lists {
      List gets = in_slots(carried(host, owner), sums, 1);
      gets.insert(gets.begin(), out(unit_of(host, owner), 0));
      return {list(in_slots(carried_for_all(owner), 0)), list(std::move(gets))};
    });
    inside(Collective::Scatter, shape_.spread_inside, false, [&](size_t host) { return has_more_ranks(host); },
           [&](size_t host, size_t local) -> Lists {
             if (local >= owners_) return {nothing_, list({out(unit_of(host, local), 0)})};
             return {list(in_slots(carried(host, local), sums, 1)), nothing_};
           });
  }

  List in_output(const std::vector<uint32_t>& units) const {
    List list;
    for (const uint32_t unit : units) list.push_back(out(unit, unit));
    return list;
  }

  void write_allgather() {
    inside(Collective::Gather, shape_.spread_inside, false, [&](size_t host) { return has_more_ranks(host); },
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
    inside(Collective::AllGather, shape_.spread_inside, false, everywhere,
           [&](size_t, size_t local) -> Lists {
             List gives, gets;
             for (size_t owner = 0; owner < owners_; ++owner) {
               List units = in_output(carried_for_all(owner));
               std::ranges::copy(units, std::back_inserter(owner == local ? gives : gets));
             }
             std::ranges::sort(gets, {}, &BlockAt::index);
             return {list(std::move(gives)), list(std::move(gets))};
           });
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

  void write_barrier() {
    const auto nothing = [&](size_t, size_t) -> Lists { return {nothing_, nothing_}; };
    inside(Collective::Barrier, shape_.reduce_inside, false, everywhere, nothing);
    across(Collective::Barrier, false, nothing);
    inside(Collective::Barrier, shape_.reduce_inside, false, everywhere, nothing);
  }

  const HierarchicalShape& shape_;
  const HostRanks& hosts_;
  const size_t owners_;
  size_t root_host_ = 0, root_local_ = 0;
  uint32_t nothing_ = 0;  // the empty list
  Program program_;
};

}  // namespace

Program hierarchical_program(Collective collective, Rank root, const HierarchicalShape& shape) {
  CCOM_ASSERT(serves_hosts(collective, shape.hosts, shape.owners));
  return Author(collective, root, shape).write();
}

bool serves_hosts(Collective collective, const HostRanks& hosts, int owners) {
  if (hosts.size() < 2 || smallest(hosts) < 1 || owners < 1 || static_cast<size_t>(owners) > smallest(hosts))
    return false;
  switch (collective) {
    case Collective::Gather:
    case Collective::Scatter:
    case Collective::Barrier: return owners == 1;
    case Collective::AllToAll:
      return smallest(hosts) == largest(hosts) && static_cast<size_t>(owners) == largest(hosts);
    case Collective::SendReceive: return false;
    default: return true;
  }
}

bool needs_blocks_across(Collective collective, const HostRanks& hosts, int owners) {
  switch (collective) {
    case Collective::Gather:
    case Collective::Scatter:
    case Collective::AllToAll: return true;
    // Algorithms move one unit for each host where every owner has just its own.
    case Collective::ReduceScatter:
    case Collective::AllGather: return static_cast<size_t>(owners) != largest(hosts);
    default: return false;
  }
}

}  // namespace ccom
