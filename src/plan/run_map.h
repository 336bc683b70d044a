// SPDX-License-Identifier: Apache-2.0
//
// A value for each of a row of cells, kept by runs: what makes plans with tens of thousands of blocks cheap to write
// and to order.
//
// Cells 0..cells-1 are covered by runs without gaps; run k reaches from its first cell to the next run's first cell.
// `Value::at(distance)` is the value `distance` cells after the run's first one. A call costs O(log runs) and what it
// visits; a run that assign() covers is gone, so runs are visited about once for each time that they are made.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory_resource>

namespace ccom {

template <typename Value>
class RunMap {
 public:
  RunMap(uint32_t cells, Value value) : cells_(cells) { runs_.emplace(0, value); }

  // Calls fn(first, count, value of the first) for the runs within [first, first + count), in order, until it returns
  // false. Cuts nothing.
  template <typename Fn>
  void visit(uint32_t first, uint32_t count, Fn fn) const {
    const uint32_t end = first + count;
    auto run = std::prev(runs_.upper_bound(first));
    while (first < end) {
      const auto next = std::next(run);
      const uint32_t stop = next == runs_.end() || next->first > end ? end : next->first;
      if (!fn(first, stop - first, run->second.at(first - run->first))) return;
      first = stop;
      run = next;
    }
  }

  // Calls fn(value&) for the runs of exactly [first, first + count), which it cuts off their neighbours.
  template <typename Fn>
  void update(uint32_t first, uint32_t count, Fn fn) {
    auto run = cut(first);
    const auto end = first + count == cells_ ? runs_.end() : cut(first + count);
    for (; run != end; ++run) fn(run->second);
  }

  // Makes [first, first + count) one run, or a part of one with neighbours that it continues.
  void assign(uint32_t first, uint32_t count, Value value) {
    const auto run = cut(first);
    const auto end = first + count == cells_ ? runs_.end() : cut(first + count);
    run->second = value;
    runs_.erase(std::next(run), end);
    if (end != runs_.end() && value.at(count) == end->second) runs_.erase(end);
    if (run == runs_.begin()) return;
    const auto before = std::prev(run);
    if (before->second.at(first - before->first) == value) runs_.erase(run);
  }

 private:
  using Runs = std::pmr::map<uint32_t, Value>;  // by first cell

  typename Runs::iterator cut(uint32_t cell) {
    const auto after = runs_.upper_bound(cell);
    const auto run = std::prev(after);
    if (run->first == cell) return run;
    return runs_.emplace_hint(after, cell, run->second.at(cell - run->first));
  }

  uint32_t cells_;
  std::pmr::unsynchronized_pool_resource pool_;  // nodes come and go with nearly every step
  Runs runs_{&pool_};
};

}  // namespace ccom
