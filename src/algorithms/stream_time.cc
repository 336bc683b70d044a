// SPDX-License-Identifier: Apache-2.0
//
// How long streams take that get into each other's way. Balanced weights give every link the same to carry, but where
// dimensions differ a stream is through with one before another has left the next, and links wait for work: 3 x 5 takes
// 1.2 times what its links carry, 4 x 4 with one dimension at half speed 1.5 times. Windows (staged.cc) fill the gaps.
#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/streams.h"

namespace ccom {
namespace {

// A stream on the links of one dimension.
struct Stay {
  size_t links = 0;    // which: both ways of a dimension are two kinds, but for streams of both and dimensions of two
  double message = 0;  // length of each
  double time = 0;     // alone
};

std::vector<Stay> stays_of(const Level& level, const TorusStream& stream, double share,
                           const std::vector<double>& bytes_per_second) {
  const std::vector<int>& dims = level.dims;
  std::vector<Stay> stays;
  if (level.pattern == Pattern::Torus) {
    for (const uint8_t d : stream.order) {
      if (dims[d] == 1) continue;
      share /= dims[d];
      const size_t way = dims[d] > 2 && stream.direction < 0 ? 1 : 0;
      const int ways = dims[d] > 2 && stream.direction == 0 ? 2 : 1;
      stays.push_back({2 * size_t{d} + way, share / ways, (dims[d] - 1) * share / ways / bytes_per_second[d]});
    }
    return stays;
  }
  for (int round = 0; 2 << round <= *std::ranges::max_element(dims); ++round) {
    for (const uint8_t d : stream.order) {
      if (2 << round > dims[d]) continue;
      share /= level.pattern == Pattern::Swing ? 2 : 1;
      const double hops = std::abs((1 - std::pow(-2, round + 1)) / 3) / (dims[d] == 2 ? 1 : 2);
      stays.push_back({2 * size_t{d}, share, share * hops / bytes_per_second[d]});
    }
  }
  return stays;
}

struct Runner {
  std::vector<Stay> stays;  // what is left, the next one last
  double left = 0;          // of that one
  bool is_done() const { return stays.empty(); }
};

// Until the first of them leaves its links, each moves by its message's part of all on them.
double step(std::vector<Runner>& runners, size_t kinds) {
  std::vector<double> on(kinds);
  for (const Runner& runner : runners) {
    if (!runner.is_done()) on[runner.stays.back().links] += runner.stays.back().message;
  }
  const auto rate = [&](const Runner& r) { return r.stays.back().message / on[r.stays.back().links]; };
  double shortest = std::numeric_limits<double>::infinity();
  for (const Runner& runner : runners) {
    if (!runner.is_done()) shortest = std::min(shortest, runner.left / rate(runner));
  }
  for (Runner& runner : runners) {
    if (runner.is_done()) continue;
    const double time = runner.left / rate(runner);
    runner.left -= shortest * rate(runner);
    if (time > shortest * (1 + 1e-9)) continue;
    runner.stays.pop_back();
    if (!runner.is_done()) runner.left = runner.stays.back().time;
  }
  return shortest;
}

}  // namespace

double streams_time(const Level& level, const std::vector<double>& bytes_per_second, bool down) {
  const std::vector<TorusStream> streams = streams_of(level);
  std::vector<Runner> runners;
  for (const TorusStream& stream : streams) {
    std::vector<Stay> stays =
        stays_of(level, stream, stream.weight / static_cast<double>(weight_sum(streams)), bytes_per_second);
    if (down) std::ranges::reverse(stays);
    if (!stays.empty()) runners.push_back({stays, stays.back().time});
  }
  double time = 0;
  while (!std::ranges::all_of(runners, &Runner::is_done)) time += step(runners, 2 * level.dims.size());
  return time;
}

}  // namespace ccom
