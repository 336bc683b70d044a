// SPDX-License-Identifier: Apache-2.0
//
// Fabrics for the lint, as path functions: a torus with dimension-order routing, and everybody with everybody; and what
// it says, against a bound.
#pragma once

#include <array>
#include <memory>

#include "plan/lint.h"

namespace ccom {

// Ranks row-major. A rank's links: 0 to the next column, 1 to the previous one, 2 to the next row, 3 to the previous
// one. Along the row first, the shorter way round.
inline LintFabric torus_fabric(int rows, int columns) {
  const auto path = std::make_shared<std::vector<uint32_t>>();
  const auto walk = [path](int at, int to, int length, int forward, auto rank_of) {
    const int ahead = (to - at + length) % length;
    const bool is_forward = 2 * ahead <= length;
    for (int hops = is_forward ? ahead : length - ahead; hops > 0; --hops) {
      path->push_back(static_cast<uint32_t>(4 * rank_of(at) + forward + (is_forward ? 0 : 1)));
      at = (at + (is_forward ? 1 : length - 1)) % length;
    }
  };
  return {static_cast<uint32_t>(4 * rows * columns), [=](Rank from, Rank to) -> std::span<const uint32_t> {
            path->clear();
            const int row = from / columns;
            walk(from % columns, to % columns, columns, 0, [=](int column) { return row * columns + column; });
            walk(row, to / columns, rows, 2, [=](int r) { return r * columns + to % columns; });
            return *path;
          }};
}

inline LintFabric mesh_fabric(int nranks) {
  const auto link = std::make_shared<uint32_t>();
  return {static_cast<uint32_t>(nranks * nranks), [=](Rank from, Rank to) -> std::span<const uint32_t> {
            *link = static_cast<uint32_t>(from * nranks + to);
            return {link.get(), 1};
          }};
}

// An InternalError that names plan, link and numbers if the bandwidth term is above `factor` times `bound`, which is
// the least that any plan can need, in vectors.
inline Status check_bound(const LintReport& report, double bound, double factor) {
  constexpr double kRounding = 1 + 1e-9;
  if (report.bandwidth_term <= factor * bound * kRounding) return {};
  size_t worst = 0;
  for (size_t i = 0; i < report.rounds.size(); ++i) {
    if (report.rounds[i].max_load > report.rounds[worst].max_load) worst = i;
  }
  return error(
      Code::InternalError,
      "lint %s: the most loaded links of its %zu rounds carry %.6f of the vector, %.4f x the bound of %.6f (at "
      "most %.4f x is allowed); link %u carries %.6f in all, link %u %.6f in round %zu alone",
      report.plan.c_str(), report.rounds.size(), report.bandwidth_term, report.bandwidth_term / bound, bound, factor,
      report.busiest_link, report.link_loads[report.busiest_link], report.rounds[worst].busiest_link,
      report.rounds[worst].max_load, worst + 1);
}

}  // namespace ccom
