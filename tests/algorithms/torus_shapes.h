// SPDX-License-Identifier: Apache-2.0
//
// Grids, the levels and plans of patterns on them, and what the lint says of those.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <vector>

#include "algorithms/collectives.h"
#include "algorithms/cycles.h"
#include "tests/algorithms/prove.h"
#include "tests/algorithms/torus_fabric.h"

namespace ccom {

using Dims = std::vector<int>;

inline int members(const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), 1, std::multiplies{}); }

inline Level level_of(Pattern pattern, const Dims& dims) {
  Level level = flat_level(pattern, members(dims));
  level.dims = dims;
  if (pattern == Pattern::Rings) level.cycles = hamiltonian_cycles(dims);
  return level;
}

inline Staged staged(const Level& level) {
  const bool core = level.pattern == Pattern::SwingLatency || level.pattern == Pattern::RecursiveDoubling;
  return core ? Staged{{}, {level}} : Staged{{level}, {}};
}

// `hosts` hosts of a grid of devices with `cores` each, numbered host after host, device after device.
inline Staged machine(int hosts, const Dims& dims, int cores, const Level& device, Pattern across = Pattern::Direct) {
  const int devices = members(dims);
  Staged shape;
  Level inside{.owners = cores}, over{.pattern = across, .owners = hosts};
  Level between = device;
  between.groups.assign(static_cast<size_t>(hosts * cores), {});
  over.groups.assign(static_cast<size_t>(devices * cores), {});
  for (Rank rank = 0; rank < hosts * devices * cores; ++rank) {
    if (rank % cores == 0) inside.groups.emplace_back();
    inside.groups.back().push_back(rank);
    const int host = rank / (devices * cores);
    between.groups[static_cast<size_t>(host * cores + rank % cores)].push_back(rank);
    over.groups[static_cast<size_t>(rank % (devices * cores))].push_back(rank);
  }
  if (cores > 1) shape.levels.push_back(inside);
  if (devices > 1) shape.levels.push_back(between);
  if (hosts > 1) shape.levels.push_back(over);
  return shape;
}

inline std::vector<Plan> plans_of(Collective collective, const Staged& shape, int nranks) {
  std::vector<Plan> plans;
  for (Rank r = 0; r < nranks; ++r) plans.push_back(staged_plan({collective, r, nranks, -1, false}, shape, "test"));
  return plans;
}

inline LintReport lint_of(const std::vector<Plan>& plans, const TorusFabric& torus) {
  const Result<LintReport> report = lint(plans, torus.fabric());
  EXPECT_TRUE(report) << report.error().message();
  return report ? *report : LintReport{};
}

inline LintReport lint_of(Collective collective, const Level& level) {
  return lint_of(plans_of(collective, staged(level), members(level.dims)), TorusFabric(level.dims));
}

// A sanitizer makes proofs ten times as slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMostMembers = 17;
#else
constexpr int kMostMembers = kMaxRanks;
#endif

// All factorizations of up to kMostMembers ranks into one to three dimensions of two or more.
inline std::vector<Dims> grids() {
  std::vector<Dims> all;
  for (int a = 1; a <= kMostMembers; ++a) {
    all.push_back({a});
    for (int b = 2; a > 1 && a * b <= kMostMembers; ++b) {
      all.push_back({a, b});
      for (int c = 2; a * b * c <= kMostMembers; ++c) all.push_back({a, b, c});
    }
  }
  all.insert(all.end(), {{1, 1}, {1, 5}, {5, 1}, {3, 1, 5}});
  return all;
}

}  // namespace ccom
