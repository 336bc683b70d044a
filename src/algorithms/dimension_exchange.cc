// SPDX-License-Identifier: Apache-2.0
//
// AllToAll along one dimension of the machine after another: cores of a device, rows, columns, hosts.
//
//   4 x 4, where (r, c) has a block for every (r', c')
//     along rows      (r, c) -> (r, c'): the blocks for (*, c'), for which c' is the right column
//     along columns   (r, c') -> (r', c'): what has come for (r', c') from all columns
//
// Every rank keeps one block for each rank, as an array with one index for each dimension. An exchange turns an index
// from "for whom" into "from whom"; the exchanged one is the first, so that what goes to one coordinate is one run, and
// afterwards it becomes the last one (Permute). As many messages as there are other coordinates, summed over the
// dimensions, instead of p - 1; n (d - 1)/d bytes along a dimension of d whose ranks reach one another.
//
// Rings. Where only neighbours are linked, blocks go the short way round, those half-way one way from even coordinates
// and the other way from odd ones. In step t a rank sends on what has come t - 1 places and has further to go: d/2
// steps that keep both links of the dimension busy, n d/8 bytes each (up to 1/9 more where d/2 is odd), which is what
// the bisection of a ring needs. Streams, one for each rotation of the dimensions of a torus with an equal share of
// every block, use all dimensions at a time: so the same holds for a torus of equal dimensions as a whole. Source:
// Johnsson & Ho, Optimum broadcasting and personalized communication in hypercubes, IEEE TC 38(9), 1989 (exchange by
// dimensions); Suh & Shin, All-to-all personalized communication in multidimensional torus and mesh networks, IEEE TPDS
// 12(1), 2001.
#include <algorithm>
#include <cmath>

#include "algorithms/collectives.h"
#include "algorithms/cost.h"
#include "base/assert.h"

namespace ccom {
namespace {

bool is_ring(const Level& level) { return level.pattern == Pattern::Torus || level.pattern == Pattern::Ring; }

std::vector<uint32_t> sizes_of(const Level& level) {
  if (level.pattern != Pattern::Torus) return {static_cast<uint32_t>(level.owners)};
  return {level.dims.begin(), level.dims.end()};
}

// Of a ring: how many places the blocks of an even or odd coordinate go in a direction.
uint32_t hops_from(uint32_t coordinate, uint32_t size, int direction) {
  const bool takes_half = size % 2 != 0 || (coordinate % 2 == 0) == (direction > 0);
  return size / 2 - (takes_half ? 0 : 1);
}

// How often an array's entries are there when its first index has become the last one.
NumberList rotation(uint32_t first, uint32_t entries) {
  std::vector<uint32_t> source(entries);
  const uint32_t rest = entries / first;
  for (uint32_t i = 0; i < entries; ++i) source[i] = i % first * rest + i / first;
  return NumberList(std::move(source));
}

}  // namespace

ExchangePlans::ExchangePlans(const Staged& shape, int nranks) : ranks_(static_cast<uint32_t>(nranks)) {
  CCOM_ASSERT(shape.core.empty());
  find_places(shape);
  if (!is_grid_) return;
  streams_ = 1;
  for (const Level& level : shape.levels) find_orders(level);
  std::vector<uint32_t> order(size_t{ranks_} * streams_), last(order.size());
  for (uint32_t s = 0; s < streams_; ++s) {
    std::vector<uint32_t> dims = orders_[s];
    for (Rank r = 0; r < nranks; ++r) order[s * ranks_ + index_of(r, dims)] = static_cast<uint32_t>(r) * streams_ + s;
    if (!dims.empty()) std::rotate(dims.begin(), dims.end() - 1, dims.end());
    for (Rank r = 0; r < nranks; ++r) last[static_cast<uint32_t>(r) * streams_ + s] = s * ranks_ + index_of(r, dims);
  }
  order_ = NumberList(std::move(order));
  last_ = NumberList(std::move(last));
  for (const Dimension& dimension : dimensions_) rotations_.push_back(rotation(dimension.size, ranks_));
}

// Every rank's coordinates, and who is where.
void ExchangePlans::find_places(const Staged& shape) {
  uint64_t places = 1;
  for (const Level& level : shape.levels) {
    for (const uint32_t size : sizes_of(level)) {
      dimensions_.push_back({size, is_ring(level)});
      places *= size;
    }
  }
  const auto has_streams = [](const Level& level) { return level.pattern == Pattern::Torus && level.dims.size() > 1; };
  is_grid_ = places == ranks_ && std::ranges::count_if(shape.levels, has_streams) < 2;
  coordinates_.assign(ranks_, std::vector<uint32_t>(dimensions_.size()));
  size_t first = 0;
  for (const Level& level : shape.levels) {
    const std::vector<uint32_t> sizes = sizes_of(level);
    std::vector<bool> seen(ranks_);
    for (const std::vector<Rank>& group : level.groups) {
      is_grid_ &= group.size() == static_cast<size_t>(level.owners);
      for (uint32_t member = 0; member < group.size(); ++member) {
        const auto rank = static_cast<size_t>(group[member]);
        is_grid_ &= rank < ranks_ && !seen[rank];
        if (!is_grid_) return;
        seen[rank] = true;
        uint32_t rest = member;
        for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) coordinates_[rank][first + d] = rest % sizes[d];
      }
    }
    is_grid_ &= std::ranges::count(seen, true) == static_cast<std::ptrdiff_t>(ranks_);
    first += sizes.size();
  }
  if (!is_grid_) return;
  std::vector<uint32_t> all(dimensions_.size());
  for (uint32_t d = 0; d < all.size(); ++d) all[d] = d;
  orders_ = {all};
  rank_at_.assign(ranks_, -1);
  for (uint32_t r = 0; r < ranks_; ++r) rank_at_[index_of(static_cast<Rank>(r), all)] = static_cast<Rank>(r);
  is_grid_ = std::ranges::count(rank_at_, -1) == 0 && groups_are_lines(shape);
}

// Whether the ranks of a group differ in the coordinates of their level only.
bool ExchangePlans::groups_are_lines(const Staged& shape) const {
  size_t first = 0;
  for (const Level& level : shape.levels) {
    const size_t count = sizes_of(level).size();
    for (const std::vector<Rank>& group : level.groups) {
      const std::vector<uint32_t>& one = coordinates_[static_cast<size_t>(group[0])];
      for (const Rank rank : group) {
        const std::vector<uint32_t>& other = coordinates_[static_cast<size_t>(rank)];
        for (size_t d = 0; d < one.size(); ++d) {
          if ((d < first || d >= first + count) && one[d] != other[d]) return false;
        }
      }
    }
    first += count;
  }
  return true;
}

// A stream for each rotation of a torus' dimensions.
void ExchangePlans::find_orders(const Level& level) {
  const auto count = static_cast<uint32_t>(sizes_of(level).size());
  if (level.pattern != Pattern::Torus || count < 2) return;
  CCOM_ASSERT(streams_ == 1);
  uint32_t first = 0;
  while (!dimensions_[first].is_ring) ++first;
  streams_ = count;
  for (uint32_t s = 1; s < count; ++s) {
    std::vector<uint32_t> order = orders_[0];
    const auto begin = order.begin() + first;
    std::rotate(begin, begin + s, begin + count);
    orders_.push_back(std::move(order));
  }
}

// Row by row, the first of `dims` running slowest.
uint32_t ExchangePlans::index_of(Rank rank, const std::vector<uint32_t>& dims) const {
  uint32_t index = 0;
  for (const uint32_t d : dims) {
    index = index * dimensions_[d].size + coordinates_[static_cast<size_t>(rank)][d];
  }
  return index;
}

// One rank's exchanges.
class ExchangeWriter {
 public:
  ExchangeWriter(const ExchangePlans& shared, Plan plan) : shared_(shared), steps_(std::move(plan)) {}

  Plan write() {
    const uint32_t places = shared_.ranks_ * shared_.streams_;
    const uint32_t outgoing = steps_.new_scratch(places), incoming = steps_.new_scratch(places);
    steps_.permute({Buffer::Input, 0}, {Buffer::Scratch, outgoing}, 0, shared_.order_);
    for (uint32_t s = 0; s < shared_.streams_; ++s) {
      first_position_ = s * shared_.ranks_;
      channel_ = static_cast<uint8_t>(s);
      from_ = {Buffer::Scratch, outgoing + first_position_};
      to_ = {Buffer::Scratch, incoming + first_position_};
      reserve_passing();
      const std::vector<uint32_t>& dims = shared_.orders_[s];
      for (const uint32_t d : dims) {
        exchange(d);
        if (d != dims.back()) steps_.permute(to_, from_, first_position_, shared_.rotations_[d]);
      }
    }
    steps_.permute({Buffer::Scratch, incoming}, {Buffer::Output, 0}, 0, shared_.last_);
    return std::move(steps_).finish();
  }

 private:
  void exchange(uint32_t d) {
    dim_ = d;
    size_ = shared_.dimensions_[d].size;
    me_ = shared_.coordinates_[static_cast<size_t>(steps_.plan().rank)][d];
    slab_ = shared_.ranks_ / size_;
    copy_own();
    if (size_ > 1) shared_.dimensions_[d].is_ring ? around() : to_all();
  }

  // The rank at a coordinate of this dimension.
  Rank at(uint32_t coordinate) const {
    uint32_t index = 0;
    const std::vector<uint32_t>& mine = shared_.coordinates_[static_cast<size_t>(steps_.plan().rank)];
    for (uint32_t d = 0; d < mine.size(); ++d) {
      index = index * shared_.dimensions_[d].size + (d == dim_ ? coordinate : mine[d]);
    }
    return shared_.rank_at_[index];
  }
  uint32_t wrap(int64_t coordinate) const {
    const auto size = static_cast<int64_t>(size_);
    return static_cast<uint32_t>((coordinate % size + size) % size);
  }
  uint32_t beyond(uint32_t coordinate, int direction, int64_t places) const {
    return wrap(static_cast<int64_t>(coordinate) + direction * places);
  }

  // `slabs` of them from place `first` of a region on.
  void send(Rank peer, Location region, uint32_t first, uint32_t slabs) {
    steps_.send_from(peer, region.at(first * slab_), first_position_ + first * slab_, slabs * slab_, channel_);
  }
  void receive(Rank peer, Location region, uint32_t first, uint32_t slabs) {
    steps_.receive_into(peer, region.at(first * slab_), first_position_ + first * slab_, slabs * slab_, channel_);
  }
  void copy_own() { steps_.copy(from_.at(me_ * slab_), to_.at(me_ * slab_), first_position_ + me_ * slab_, slab_); }

  void to_all() {
    for (uint32_t k = 1; k < size_; ++k) {
      const uint32_t to = (me_ + k) % size_, from = (me_ + size_ - k) % size_;
      send(at(to), from_, to, 1);
      receive(at(from), to_, from, 1);
    }
  }

  // Two regions for each direction, in turn, of what goes on.
  void reserve_passing() {
    uint32_t most = 0;
    for (const auto& dimension : shared_.dimensions_) {
      if (!dimension.is_ring || dimension.size < 4) continue;
      most = std::max(most, (dimension.size / 2 - 1) * (shared_.ranks_ / dimension.size));
    }
    for (Location& region : passing_) region = {Buffer::Scratch, steps_.new_scratch(most, first_position_)};
  }
  Location passing(int direction, uint32_t step) const { return passing_[(direction > 0 ? 0 : 2) + step % 2]; }

  void around() {
    for (uint32_t step = 1; step <= size_ / 2; ++step) {
      for (const int direction : {1, -1}) send_on(direction, step);
      for (const int direction : {1, -1}) take(direction, step);
    }
  }

  // What lies further than the next rank goes first: it has the longest way. Slabs lie by ascending coordinate of whom
  // they are for.
  void send_on(int direction, uint32_t step) {
    const uint32_t origin = beyond(me_, direction, 1 - static_cast<int64_t>(step));
    const uint32_t hops = hops_from(origin, size_, direction);
    if (hops < step) return;
    const Rank next = at(beyond(me_, direction, 1));
    const uint32_t further = hops - step;
    if (step == 1) {
      for_each_piece(origin, direction, hops,
                     [&](uint32_t first, uint32_t, uint32_t slabs) { send(next, from_, first, slabs); });
      return send(next, from_, beyond(me_, direction, 1), 1);
    }
    const Location region = passing(direction, step - 1);
    if (further > 0) send(next, region, direction > 0 ? 1 : 0, further);
    send(next, region, direction > 0 ? 0 : further, 1);
  }

  void take(int direction, uint32_t step) {
    const uint32_t origin = beyond(me_, direction, -static_cast<int64_t>(step));
    const uint32_t hops = hops_from(origin, size_, direction);
    if (hops < step) return;
    const Rank previous = at(beyond(me_, direction, -1));
    const Location region = passing(direction, step);
    if (step == 1) {
      for_each_piece(origin, direction, hops,
                     [&](uint32_t, uint32_t place, uint32_t slabs) { receive(previous, region, place, slabs); });
    } else if (hops > step) {
      receive(previous, region, 0, hops - step);
    }
    receive(previous, to_, origin, 1);
  }

  // fn(first coordinate, place among all, slabs): whom a rank's slabs are for that lie two places away and more, in
  // runs of coordinates.
  template <typename Fn>
  void for_each_piece(uint32_t origin, int direction, uint32_t hops, Fn fn) const {
    const uint32_t slabs = hops - 1;
    const uint32_t first = beyond(origin, direction, direction > 0 ? 2 : hops);
    const uint32_t head = std::min(slabs, size_ - first);
    if (head > 0) fn(first, 0, head);
    if (head < slabs) fn(0, head, slabs - head);
  }

  const ExchangePlans& shared_;
  StepWriter steps_;
  uint32_t first_position_ = 0;  // of the stream
  uint8_t channel_ = 0;
  Location from_{}, to_{}, passing_[4]{};
  uint32_t dim_ = 0, size_ = 1, me_ = 0, slab_ = 1;
};

Plan ExchangePlans::make(const Call& call, const std::string& algorithm) const {
  CCOM_ASSERT(is_grid_ && call.collective == Collective::AllToAll && static_cast<uint32_t>(call.nranks) == ranks_);
  Plan plan = empty_plan(call, algorithm);
  if (call.nranks == 1) {
    StepWriter steps(std::move(plan));
    steps.copy({Buffer::Input, 0}, {Buffer::Output, 0}, 0, 1);
    return std::move(steps).finish();
  }
  plan.blocks_per_unit = streams_;
  plan.order = order_;
  return ExchangeWriter(*this, std::move(plan)).write();
}

Cost ring_exchange_cost(double d, double n) {
  const double half = std::floor(d / 2);
  const bool is_odd = std::fmod(d, 2) != 0;
  // Slabs of all distances, those half-way in one direction only; as even as whole ones can be.
  const double slabs = is_odd ? half * (half + 1) / 2 : half * (half - 1) / 2 + std::ceil(half / 2);
  return {half, d < 2 ? 0 : 4 * half, n * slabs / d, 0};
}

}  // namespace ccom
