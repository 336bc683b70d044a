// SPDX-License-Identifier: Apache-2.0
#include "algorithms/hierarchical.h"

#include "algorithms/hierarchical_author.h"
#include "base/assert.h"
#include "base/collective.h"

namespace ccom {
namespace {

class VectorAuthor final : public ProgramAuthor {
 public:
  using ProgramAuthor::ProgramAuthor;

  Program write() {
    switch (program_.collective) {
      case Collective::AllReduce: write_allreduce(); break;
      case Collective::Reduce: write_reduce(); break;
      case Collective::Broadcast: write_broadcast(); break;
      default: write_barrier(); break;
    }
    return std::move(program_);
  }

 private:
  // In the owners' first slots.
  void sum_inside() {
    ProgramAuthor::sum_inside(everywhere, for_slices([](uint32_t s) { return in(s, s); }), 0);
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
    gather_at_root(1);
  }

  void write_broadcast() {
    program_.slices = static_cast<uint32_t>(owners_);
    const auto at_root_host = [&](size_t host) { return host == root_host_; };
    const auto elsewhere = [&](size_t host) { return host != root_host_; };
    const uint32_t given = list(for_slices([](uint32_t s) { return in(s, s); }));
    const uint32_t gotten = list(for_slices([](uint32_t s) { return out(s, s); }));
    if (owners_ > 1) {
      inside(Collective::Broadcast, shape_.spread_inside, false, at_root_host, [&](size_t host, size_t local) -> Lists {
        return {is_root(host, local) ? given : nothing_, gotten};
      });
    }
    across(Collective::Broadcast, false, [&](size_t host, size_t owner) -> Lists {
      const auto slice = static_cast<uint32_t>(owner);
      if (host != root_host_) return {nothing_, list({out(slice, slice)})};
      const uint32_t own = list({owners_ > 1 ? out(slice, slice) : in(slice, slice)});
      return {own, own};
    });
    if (owners_ > 1) return spread_inside(elsewhere);
    inside(Collective::Broadcast, shape_.spread_inside, false, everywhere, [&](size_t host, size_t local) -> Lists {
      if (is_root(host, local)) return {given, gotten};
      return owns(host, local) ? Lists{gotten, nothing_} : Lists{nothing_, gotten};
    });
  }

  void write_barrier() {
    const auto nothing = [&](size_t, size_t) -> Lists { return {nothing_, nothing_}; };
    inside(Collective::Barrier, shape_.reduce_inside, false, everywhere, nothing);
    across(Collective::Barrier, false, nothing);
    inside(Collective::Barrier, shape_.reduce_inside, false, everywhere, nothing);
  }
};

}  // namespace

Program hierarchical_program(Collective collective, Rank root, const HierarchicalShape& shape) {
  CCOM_ASSERT(serves_hosts(collective, shape.hosts, shape.owners));
  const bool is_vector = !is_per_rank(collective) || collective == Collective::Barrier;
  if (is_vector && shape.wire != UnitType::Call) return hierarchical_typed_program(collective, root, shape);
  return is_vector ? VectorAuthor(collective, root, shape).write() : hierarchical_unit_program(collective, root, shape);
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
