// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/families.h"

#include <bit>
#include <cmath>

#include "algorithms/cycles.h"
#include "base/collective.h"
#include "plan/print.h"

namespace ccom {
namespace {

bool is_core(Pattern pattern) {
  return pattern == Pattern::OneShot || pattern == Pattern::RecursiveDoubling || pattern == Pattern::BineLatency;
}

int side(int nranks) { return static_cast<int>(std::lround(std::sqrt(nranks))); }

// The largest divisor up to the square root.
int rows_of(int nranks) {
  int rows = side(nranks);
  while (nranks % rows != 0) --rows;
  return rows;
}

void add_staged(std::vector<Family>& list, const std::string& name, const std::function<bool(int)>& exists,
                const std::function<Staged(int)>& shape) {
  for (const Collective collective : {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather}) {
    if (collective != Collective::AllReduce && !shape(16).core.empty()) continue;
    list.push_back({name, collective, exists,
                    [shape, name](const Call& call) { return staged_plan(call, shape(call.nranks), name); }});
  }
}

bool is_power(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

Staged cycles_shape(int nranks) {
  Staged shape = flat_shape(Pattern::Rings, nranks);
  shape.levels[0].dims = {rows_of(nranks), nranks / rows_of(nranks)};
  shape.levels[0].cycles = hamiltonian_cycles(shape.levels[0].dims);
  return shape;
}

// The same shape with its data in the order of positions.
void add_by_position(std::vector<Family>& list, const std::string& name, const std::function<bool(int)>& exists,
                     const std::function<Staged(int)>& shape) {
  for (const Collective collective : {Collective::ReduceScatter, Collective::AllGather}) {
    list.push_back({name + "_by_position", collective, exists, [shape, name](const Call& call) {
                      Staged ordered = shape(call.nranks);
                      ordered.by_position = true;
                      return staged_plan(call, ordered, name);
                    }});
  }
}

void add_positions(std::vector<Family>& list) {
  add_by_position(
      list, "torus", [](int) { return true; }, [](int n) { return torus_shape(rows_of(n), n / rows_of(n)); });
  add_by_position(
      list, "swing", [](int n) { return n > 1 && is_power(n); },
      [](int n) {
        Staged shape = flat_shape(Pattern::Swing, n);
        shape.levels[0].dims = {rows_of(n), n / rows_of(n)};
        return shape;
      });
  add_by_position(
      list, "bine", [](int n) { return n > 1 && is_power(n); }, [](int n) { return flat_shape(Pattern::Bine, n); });
  add_by_position(
      list, "hosts_of_squares", [](int n) { return n % 4 == 0 && n > 4; },
      [](int n) { return host_shape(n / 4, 4, Pattern::Direct, 2); });
  add_by_position(
      list, "windows", [](int n) { return n % 2 == 0 && n > 2; },
      [](int n) {
        Staged shape = host_shape(n / 2, 2, Pattern::Circulant);
        shape.windows = 2;
        return shape;
      });
}

// Due one and a half blocks earlier for each step to the root.
std::vector<Tree> with_leads(std::vector<Tree> trees) {
  for (Tree& tree : trees) {
    for (size_t rank = 0; rank < tree.parent.size(); ++rank) {
      tree.egress.push_back(1);
      tree.lead.push_back(0);
      for (Rank at = tree.parent[rank]; at >= 0; at = tree.parent[static_cast<size_t>(at)])
        tree.lead.back() += 3 * Tree::kLeadUnits / 2;
    }
  }
  return trees;
}

// Gather and Scatter whose messages are whole subtrees, or pieces of them.
void add_unit_trees(std::vector<Family>& list) {
  for (const Collective collective : {Collective::Gather, Collective::Scatter}) {
    for (const int chunks : {1, 2}) {
      list.push_back({chunks == 1 ? "tree_by_position" : "tree_by_position_in_pieces", collective,
                      [](int) { return true; },
                      [chunks](const Call& call) {
                        Tree tree = knomial_tree(call.nranks, call.nranks / 2, 3);
                        tree.by_position = true;
                        tree.chunks = chunks;
                        Call from_root = call;
                        from_root.root = tree.root;
                        from_root.in_place = call.in_place && call.rank == tree.root;
                        return tree_plan(from_root, tree, "by_position");
                      }});
    }
  }
}

// AllToAll along dimensions: a ring, a torus, a cube, hosts of either.
void add_dimension_exchanges(std::vector<Family>& list) {
  const auto add = [&](const std::string& name, auto exists, auto shape) {
    list.push_back({name, Collective::AllToAll, exists, [shape, name](const Call& call) {
                      return ExchangePlans(shape(call.nranks), call.nranks).make(call, name);
                    }});
  };
  const auto always = [](int) { return true; };
  add("exchange_ring", always, [](int n) { return flat_shape(Pattern::Ring, n); });
  add("exchange_torus", always, [](int n) { return torus_shape(rows_of(n), n / rows_of(n)); });
  add(
      "exchange_cube", [](int n) { return n % 2 == 0; },
      [](int n) {
        Staged shape = flat_shape(Pattern::Torus, n);
        shape.levels[0].dims = {2, rows_of(n / 2), n / 2 / rows_of(n / 2)};
        return shape;
      });
  add(
      "exchange_hosts", [](int n) { return n % 4 == 0; },
      [](int n) { return host_shape(n / 4, 4, Pattern::Direct, 2); });
}

// Algorithms of tori and clusters.
void add_fabrics(std::vector<Family>& list) {
  const auto powers = [](int n) { return n > 1 && is_power(n); };
  const auto grid = [](Staged shape, int n) {
    (shape.core.empty() ? shape.levels : shape.core)[0].dims = {rows_of(n), n / rows_of(n)};
    return shape;
  };
  add_staged(list, "swing", powers, [=](int n) { return grid(flat_shape(Pattern::Swing, n), n); });
  add_staged(list, "swing_latency", powers, [=](int n) { return grid(core_shape(Pattern::SwingLatency, n), n); });
  add_staged(list, "doubling_by_dimension", powers,
             [=](int n) { return grid(core_shape(Pattern::RecursiveDoubling, n), n); });
  add_staged(
      list, "cycles", [](int n) { return n > 3 && !cycles_shape(n).levels[0].cycles.empty(); }, cycles_shape);
  const auto by_dimension = [](int n) {
    return Staged{
        dimension_levels(Pattern::Circulant, {rows_of(n), n / rows_of(n)}, flat_level(Pattern::Circulant, n).groups),
        {}};
  };
  add_staged(
      list, "circulant_by_dimension", [](int n) { return n > 3 && rows_of(n) > 1; }, by_dimension);
  const auto windows = [](int n) {
    Staged shape = host_shape(n / 2, 2, Pattern::Ring);
    shape.windows = 2;
    return shape;
  };
  add_staged(
      list, "windows", [](int n) { return n % 2 == 0 && n > 2; }, windows);
  list.push_back({"mixed_radix", Collective::AllReduce, [](int n) { return n % 2 == 0 && n > 2; },
                  [](const Call& call) { return mixed_radix_plan(call, radix_shape(call.nranks / 2, 2), "radix"); }});
  for (const Collective collective : {Collective::AllReduce, Collective::Broadcast, Collective::Reduce}) {
    const bool rooted = collective != Collective::AllReduce;
    list.push_back({"double_tree", collective, [](int n) { return n > 2; },
                    [rooted](const Call& call) {
                      Call from_root = call;
                      from_root.root = rooted ? call.nranks / 2 : -1;
                      return tree_plan(from_root, double_tree(call.nranks, from_root.root, 2), "double_tree");
                    }});
  }
  list.push_back({"double_tree_in_order", Collective::Reduce, [](int n) { return n > 2; },
                  [](const Call& call) {
                    Call from_root = call;
                    from_root.root = call.nranks / 2;
                    return tree_plan(from_root, with_leads(double_tree(call.nranks, from_root.root, 3)), "in_order");
                  }});
}

std::vector<Rank> in_row(int nranks) { return flat_level(Pattern::Direct, nranks).groups[0]; }

void add_bine(std::vector<Family>& list) {
  const auto powers = [](int n) { return n > 1 && is_power(n); };
  const auto always = [](int) { return true; };
  add_staged(list, "bine", powers, [](int n) { return flat_shape(Pattern::Bine, n); });
  add_staged(list, "bine_latency", always, [](int n) { return core_shape(Pattern::BineLatency, n); });
  for (const Collective collective :
       {Collective::Broadcast, Collective::Reduce, Collective::Gather, Collective::Scatter}) {
    list.push_back({"bine", collective, always, [](const Call& call) {
                      Call from_root = call;
                      from_root.root = call.nranks / 2;
                      const bool everywhere =
                          call.collective == Collective::Broadcast || call.collective == Collective::Reduce;
                      from_root.in_place = call.in_place && (everywhere || call.rank == from_root.root);
                      return tree_plan(from_root, bine_tree(in_row(call.nranks), from_root.root), "bine");
                    }});
  }
  list.push_back({"bine", Collective::AllToAll, powers, bine_alltoall_plan});
}

std::vector<Family> make_families() {
  std::vector<Family> list;
  const auto always = [](int) { return true; };
  const std::pair<const char*, Pattern> flat[] = {{"one_shot", Pattern::OneShot},
                                                  {"two_shot", Pattern::Direct},
                                                  {"ring", Pattern::Ring},
                                                  {"circulant", Pattern::Circulant},
                                                  {"recursive_doubling", Pattern::RecursiveDoubling}};
  for (const auto& [name, pattern] : flat) {
    add_staged(list, name, always, [pattern = pattern](int n) {
      return is_core(pattern) ? core_shape(pattern, n) : flat_shape(pattern, n);
    });
  }
  add_staged(list, "torus", always, [](int n) { return torus_shape(rows_of(n), n / rows_of(n)); });
  const auto pairs = [](int n) { return n % 2 == 0 && n > 2; };
  add_staged(list, "hosts_of_two", pairs, [](int n) { return host_shape(n / 2, 2, Pattern::Circulant); });
  add_staged(list, "two_hosts", pairs, [](int n) { return host_shape(2, n / 2, Pattern::RecursiveDoubling); });
  add_staged(
      list, "hosts_of_squares", [](int n) { return n % 4 == 0 && n > 4; },
      [](int n) { return host_shape(n / 4, 4, Pattern::Ring, n > 4 ? 2 : 0); });
  for (const Collective collective :
       {Collective::Broadcast, Collective::Reduce, Collective::Gather, Collective::Scatter, Collective::AllReduce,
        Collective::ReduceScatter, Collective::AllGather}) {
    const bool rooted = is_rooted(collective);
    list.push_back({"binomial", collective, always, [rooted](const Call& call) {
                      Tree tree = knomial_tree(call.nranks, call.nranks / 2, 2);
                      tree.chunks = 2;
                      Call from_root = call;
                      if (rooted) from_root.root = tree.root;
                      const bool everywhere =
                          !rooted || call.collective == Collective::Broadcast || call.collective == Collective::Reduce;
                      from_root.in_place = call.in_place && (everywhere || call.rank == tree.root);
                      return tree_plan(from_root, tree, "binomial");
                    }});
  }
  add_fabrics(list);
  add_bine(list);
  list.push_back({"pairwise", Collective::AllToAll, always, pairwise_alltoall_plan});
  add_positions(list);
  add_unit_trees(list);
  add_dimension_exchanges(list);
  list.push_back({"bruck", Collective::AllToAll, always, bruck_alltoall_plan});
  list.push_back({"routed", Collective::AllToAll, always, [](const Call& call) {
                    return routed_alltoall_plan(call, staged_plan({Collective::AllGather, call.rank, call.nranks},
                                                                  flat_shape(Pattern::Ring, call.nranks), ""));
                  }});
  return list;
}

}  // namespace

std::vector<Plan> Family::plans(int nranks, bool in_place) const {
  return plans_of(nranks, [&](Rank r) { return make({collective, r, nranks, -1, in_place}); });
}

std::vector<Plan> plans_of(int nranks, const PlanOf& plan_of) {
  std::vector<Plan> plans;
  plans.reserve(static_cast<size_t>(nranks));
  for (Rank r = 0; r < nranks; ++r) plans.push_back(plan_of(r));
  return plans;
}

const std::vector<Family>& families() {
  static const std::vector<Family> list = make_families();
  return list;
}

Staged flat_shape(Pattern pattern, int nranks) { return {{flat_level(pattern, nranks)}, {}}; }
Staged core_shape(Pattern pattern, int nranks) { return {{}, {flat_level(pattern, nranks)}}; }

Staged torus_shape(int rows, int columns) {
  Staged shape = flat_shape(Pattern::Torus, rows * columns);
  shape.levels[0].dims = {rows, columns};
  return shape;
}

Staged host_shape(int hosts, int per_host, Pattern across, int rows) {
  Level inside = rows > 0 ? torus_shape(rows, per_host / rows).levels[0] : flat_level(Pattern::Direct, per_host);
  Level over = flat_level(across, hosts);
  inside.groups.clear();
  over.groups.assign(static_cast<size_t>(per_host), {});
  for (Rank host = 0; host < hosts; ++host) {
    inside.groups.emplace_back();
    for (Rank i = 0; i < per_host; ++i) {
      inside.groups.back().push_back(host * per_host + i);
      over.groups[static_cast<size_t>(i)].push_back(host * per_host + i);
    }
  }
  Staged shape{{inside}, {}};
  (is_core(across) ? shape.core : shape.levels).push_back(over);
  return shape;
}

Radix radix_shape(int hosts, int per_host) {
  return {host_shape(hosts, per_host, Pattern::Ring).levels[0].groups, {per_host}, choose_radices(hosts, per_host)};
}

}  // namespace ccom
