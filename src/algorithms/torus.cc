// SPDX-License-Identifier: Apache-2.0
//
// Bucket algorithm on a 2D torus with all four ports: quarters of the data, each with its own first dimension and
// direction.
//
//   quarter  first dimension  direction      A quarter's reduce-scatter is a ring along its first dimension (parts of
//   1/a),
//      0       rows             +1           then along the other (1/b); allgather runs back. The four quarters use the
//      1       columns          +1           four outgoing links of every member, in every step, so that the bandwidth
//      2       rows             -1           term meets the bound of a torus: n/4 per link and direction.
//      3       columns          -1
//
// 2((rows-1) + (columns-1)) steps for an allreduce, 2(p-1)/p n bytes per rank, neighbours only, any rows x columns.
// "Rows" means along a row, that is among the members that share a row. Source: Barnett et al., Global combine on mesh
// architectures, JPDC 1995; Jain & Sabharwal, Optimal bucket algorithms for large MPI collectives on torus
// interconnects, ICS 2010.
#include "algorithms/bricks.h"
#include "algorithms/cost.h"
#include "base/assert.h"

namespace ccom {
namespace {

struct Quarter {
  bool rows_first;
  int direction;
};
constexpr Quarter kQuarters[] = {{true, 1}, {false, 1}, {true, -1}, {false, -1}};
constexpr uint32_t kQuarterCount = 4;

struct Grid {
  const Group& group;
  uint32_t rows, columns;
  uint32_t row() const { return group.me / columns; }
  uint32_t column() const { return group.me % columns; }

  std::vector<Rank> along(bool row_line) const {
    std::vector<Rank> line;
    for (uint32_t i = 0; i < (row_line ? columns : rows); ++i) {
      line.push_back(group.rank(row_line ? row() * columns + i : i * columns + column()));
    }
    return line;
  }
  uint32_t position(bool row_line) const { return row_line ? column() : row(); }
};

}  // namespace

std::vector<Range> torus_owned(uint32_t me, int rows, int columns, Range range) {
  const auto width = static_cast<uint32_t>(columns);
  const auto height = static_cast<uint32_t>(rows);
  std::vector<Range> owned;
  for (uint32_t q = 0; q < kQuarterCount; ++q) {
    const Range quarter = range.part(q, kQuarterCount);
    const uint32_t column = me % width;
    const uint32_t row = me / width;
    owned.push_back(kQuarters[q].rows_first ? quarter.part(column, width).part(row, height)
                                            : quarter.part(row, height).part(column, width));
  }
  return owned;
}

std::vector<Range> torus_reduce_scatter(Builder& builder, const Group& group, int rows, int columns, Range range,
                                        bool completes) {
  const Grid grid{group, static_cast<uint32_t>(rows), static_cast<uint32_t>(columns)};
  CCOM_ASSERT(grid.rows * grid.columns == group.size());
  for (uint8_t q = 0; q < kQuarterCount; ++q) {
    Range part = range.part(q, kQuarterCount);
    for (const bool row_line : {kQuarters[q].rows_first, !kQuarters[q].rows_first}) {
      const std::vector<Rank> line = grid.along(row_line);
      if (line.size() == 1) continue;
      // The last ring that does anything completes the sum.
      const bool is_second = row_line != kQuarters[q].rows_first;
      const bool is_last = is_second || (row_line ? grid.rows : grid.columns) == 1;
      part = ring_reduce_scatter(builder, {&line, grid.position(row_line)}, part, completes && is_last,
                                 kQuarters[q].direction, q);
    }
  }
  return torus_owned(group.me, rows, columns, range);
}

void torus_allgather(Builder& builder, const Group& group, int rows, int columns, Range range) {
  const Grid grid{group, static_cast<uint32_t>(rows), static_cast<uint32_t>(columns)};
  for (uint8_t q = 0; q < kQuarterCount; ++q) {
    const bool first = kQuarters[q].rows_first;
    const Range quarter = range.part(q, kQuarterCount);
    const std::vector<Rank> outer = grid.along(first);
    const std::vector<Rank> inner = grid.along(!first);
    const Range strip = quarter.part(grid.position(first), static_cast<uint32_t>(outer.size()));
    if (inner.size() > 1) {
      ring_allgather(builder, {&inner, grid.position(!first)}, strip, kQuarters[q].direction, q);
    }
    if (outer.size() > 1) {
      ring_allgather(builder, {&outer, grid.position(first)}, quarter, kQuarters[q].direction, q);
    }
  }
}

// The four quarters run at once on four links: bytes count a quarter of what is sent. Quarters that have the longer
// dimension second send the longest; rows = columns makes them equal.
Cost torus_reduce_scatter_cost(double rows, double columns, double n) {
  const double p = rows * columns;
  const double steps = rows + columns - 2;
  return {steps, 4 * steps, n / 4 * (p - 1) / p, 2 * n * (p - 1) / p};
}
Cost torus_allgather_cost(double rows, double columns, double n) {
  Cost cost = torus_reduce_scatter_cost(rows, columns, n);
  cost.reduced = 0;
  return cost;
}

}  // namespace ccom
