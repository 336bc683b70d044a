// SPDX-License-Identifier: Apache-2.0
//
// Weights follow from loads: a stream of share f that reduces along dimensions of a, b, c members in that order puts
// f (a-1)/a on a's links, f/a (b-1)/b on b's, f/(ab) (c-1)/c on c's. Equal shares of all rotations balance equal
// dimensions; R x C needs row-first and column-first in other proportions, and slow links want streams that come to
// them late. With at most six orders and a small sum of weights all combinations are tried.
#include "algorithms/streams.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/assert.h"

namespace ccom {

uint32_t Grid::stride(uint8_t dim) const {
  uint32_t stride = 1;
  for (size_t d = dim + size_t{1}; d < dims_.size(); ++d) stride *= static_cast<uint32_t>(dims_[d]);
  return stride;
}

std::vector<Rank> Grid::line(const Group& group, uint8_t dim) const {
  std::vector<Rank> line;
  for (uint32_t i = 0; i < size(dim); ++i) line.push_back(group.rank(at(dim, i)));
  return line;
}

namespace {

// Both ways round for each order with a weight, all forward ones first.
std::vector<TorusStream> both_ways(const std::vector<std::vector<uint8_t>>& orders,
                                   const std::vector<uint32_t>& weights) {
  std::vector<TorusStream> streams;
  for (const int direction : {1, -1}) {
    for (size_t i = 0; i < orders.size(); ++i) {
      if (weights[i] > 0) streams.push_back({orders[i], direction, weights[i]});
    }
  }
  return streams;
}

// d, d-1, ..., 0, last, ..., d+1 for every dimension d that has several members.
std::vector<std::vector<uint8_t>> rotations(const std::vector<int>& dims) {
  std::vector<std::vector<uint8_t>> orders;
  const size_t n = dims.size();
  for (size_t d = n; d-- > 0;) {
    if (dims[d] == 1 && (d > 0 || !orders.empty())) continue;
    std::vector<uint8_t>& order = orders.emplace_back();
    for (size_t i = 0; i < n; ++i) order.push_back(static_cast<uint8_t>((d + n - i) % n));
  }
  return orders;
}

// Of all orders of dims those that differ in where the dimensions with several members come.
std::vector<std::vector<uint8_t>> permutations(const std::vector<int>& dims) {
  std::vector<uint8_t> several, single;
  for (uint8_t d = 0; d < dims.size(); ++d) (dims[d] > 1 ? several : single).push_back(d);
  std::ranges::sort(several, std::greater{});
  std::vector<std::vector<uint8_t>> orders;
  do {
    orders.push_back(several);
    orders.back().insert(orders.back().end(), single.begin(), single.end());
  } while (std::ranges::prev_permutation(several).found);
  return orders;
}

// What a reduce-scatter of one unit of data, half of it each way round, puts on one directed link of each dimension.
std::vector<double> bucket_loads(const std::vector<int>& dims, const std::vector<uint8_t>& order) {
  std::vector<double> loads(dims.size());
  double left = 1;
  for (const uint8_t d : order) {
    const double a = dims[d];
    loads[d] = left * (a - 1) / a / (dims[d] == 2 ? 1 : 2);
    left /= a;
  }
  return loads;
}

// Round s of a dimension goes |(1 - (-2)^(s+1)) / 3| places: so many links carry what every member sends; streams of
// both directions together load them evenly. `keeps`: what is left for the next round.
std::vector<double> swing_loads(const std::vector<int>& dims, const std::vector<uint8_t>& order, double keeps) {
  std::vector<double> loads(dims.size());
  double left = 1;
  for (int round = 0; 2 << round <= *std::ranges::max_element(dims); ++round) {
    for (const uint8_t d : order) {
      if (2 << round > dims[d]) continue;
      left *= keeps;
      loads[d] += left * std::abs((1 - std::pow(-2, round + 1)) / 3) / (dims[d] == 2 ? 1 : 2);
    }
  }
  return loads;
}

std::vector<double> loads_of(Pattern pattern, const std::vector<int>& dims, const std::vector<uint8_t>& order) {
  switch (pattern) {
    case Pattern::Swing: return swing_loads(dims, order, 0.5);
    case Pattern::SwingLatency: return swing_loads(dims, order, 1);
    default: return bucket_loads(dims, order);
  }
}

// Tries all weights with a given sum.
class Balance {
 public:
  Balance(std::vector<std::vector<double>> times) : times_(std::move(times)), weights_(times_.size()) {}

  // The least time of the busiest link for this sum, and its weights in `best`.
  double least(uint32_t sum, std::vector<uint32_t>& best) {
    least_ = INFINITY;
    sum_ = sum;
    best_ = &best;
    std::vector<double> busy(times_[0].size());
    visit(0, sum, busy);
    return least_;
  }

 private:
  void visit(size_t order, uint32_t left, const std::vector<double>& busy) {
    if (order + 1 == times_.size()) {
      weights_[order] = left;
      double busiest = 0;
      for (size_t d = 0; d < busy.size(); ++d) busiest = std::max(busiest, busy[d] + left * times_[order][d]);
      if (busiest / sum_ < least_ * (1 - 1e-9)) {
        least_ = busiest / sum_;
        *best_ = weights_;
      }
      return;
    }
    std::vector<double> next = busy;
    for (uint32_t weight = 0; weight <= left; ++weight) {
      weights_[order] = weight;
      visit(order + 1, left - weight, next);
      for (size_t d = 0; d < next.size(); ++d) next[d] += times_[order][d];
    }
  }

  std::vector<std::vector<double>> times_;  // by order, then dimension
  std::vector<uint32_t> weights_;
  std::vector<uint32_t>* best_ = nullptr;
  double least_ = 0;
  uint32_t sum_ = 1;
};

}  // namespace

std::vector<TorusStream> default_streams(const std::vector<int>& dims) {
  const auto orders = rotations(dims);
  return both_ways(orders, std::vector<uint32_t>(orders.size(), 1));
}

std::vector<TorusStream> balanced_streams(const std::vector<int>& dims, const std::vector<double>& bytes_per_second,
                                          Pattern pattern) {
  constexpr uint32_t kMostPairs = 16;   // of streams; two directions each
  constexpr double kTolerance = 1.004;  // a little more on the busiest link is worth fewer blocks
  CCOM_ASSERT(bytes_per_second.size() == dims.size());
  const auto orders = pattern == Pattern::Torus ? permutations(dims) : rotations(dims);
  std::vector<std::vector<double>> times;
  for (const auto& order : orders) {
    times.push_back(loads_of(pattern, dims, order));
    for (size_t d = 0; d < dims.size(); ++d) times.back()[d] /= bytes_per_second[d];
  }
  Balance balance(std::move(times));
  std::vector<std::vector<uint32_t>> weights(kMostPairs + 1);
  std::vector<double> busiest(kMostPairs + 1, INFINITY);
  for (uint32_t sum = 1; sum <= kMostPairs; ++sum) busiest[sum] = balance.least(sum, weights[sum]);
  const double least = *std::ranges::min_element(busiest);
  uint32_t sum = 1;
  while (busiest[sum] > least * kTolerance) ++sum;
  return both_ways(orders, weights[sum]);
}

std::vector<TorusStream> joined_streams(const std::vector<TorusStream>& both_ways) {
  std::vector<TorusStream> joined;
  for (const TorusStream& stream : both_ways) {
    if (stream.direction > 0) joined.push_back({stream.order, 0, 2 * stream.weight});
  }
  return joined;
}

std::vector<TorusStream> streams_of(const Level& level) {
  switch (level.pattern) {
    case Pattern::Torus:
    case Pattern::Swing:
    case Pattern::SwingLatency: return level.streams.empty() ? default_streams(level.dims) : level.streams;
    case Pattern::RecursiveDoubling: return level.streams;
    case Pattern::Rings: {
      std::vector<TorusStream> streams(2 * level.cycles.size());
      for (size_t s = level.cycles.size(); s < streams.size(); ++s) streams[s].direction = -1;
      return streams;
    }
    default: return {};
  }
}

uint32_t stream_count(const Level& level) {
  return std::max(static_cast<uint32_t>(streams_of(level).size()), uint32_t{1});
}

size_t torus_laps(const Level& level) {
  if (level.pattern != Pattern::Torus) return 1;
  return std::max<size_t>(1, static_cast<size_t>(std::ranges::count_if(level.dims, [](int d) { return d > 1; })));
}

uint32_t weight_sum(const std::vector<TorusStream>& streams) {
  uint32_t sum = streams.empty() ? 1 : 0;
  for (const TorusStream& stream : streams) sum += stream.weight;
  return sum;
}

Range share_of(const std::vector<TorusStream>& streams, size_t s, Range range) {
  CCOM_ASSERT(s < streams.size() && range.count % weight_sum(streams) == 0);
  const uint32_t unit = range.count / weight_sum(streams);
  for (size_t i = 0; i < s; ++i) range.first += streams[i].weight * unit;
  return {range.first, streams[s].weight * unit};
}

std::vector<double> torus_loads(const Level& level) {
  const std::vector<TorusStream> streams = streams_of(level);
  const double sum = weight_sum(streams);
  std::vector<double> ways[2] = {std::vector<double>(level.dims.size()), std::vector<double>(level.dims.size())};
  for (const TorusStream& stream : streams) {
    const std::vector<double> loads = loads_of(level.pattern, level.dims, stream.order);
    for (size_t d = 0; d < loads.size(); ++d) {
      // A bucket stream of one way uses one direction of a ring; Swing's, and rings of two, use both.
      const bool both = level.pattern != Pattern::Torus || level.dims[d] == 2 || stream.direction == 0;
      const double load = loads[d] * stream.weight / sum;
      if (both) {
        ways[0][d] += load;
        ways[1][d] += load;
      } else {
        ways[stream.direction > 0 ? 0 : 1][d] += 2 * load;
      }
    }
  }
  for (size_t d = 0; d < ways[0].size(); ++d) ways[0][d] = std::max(ways[0][d], ways[1][d]);
  return ways[0];
}

}  // namespace ccom
