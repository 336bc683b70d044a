// SPDX-License-Identifier: Apache-2.0
//
// All ranks' plans run in lock step over a torus: in each step every transfer that may start does, and all end
// together.
//
// Messages go the short way along one dimension after another (the last first), as the loads of algorithms/streams.h
// take it. Links of dimension d are `speeds[d]` times as fast as one unit (all 1 if none are given). So a plan's steps
// are counted on its longest chain, and each link's bytes in each step are known.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "plan/executor.h"

namespace ccom {

struct Lockstep {
  int steps = 0;
  int hops = 0;            // the longest message of each step, summed
  double time = 0;         // the busiest link's share of the vector in each step, summed
  int idlest = INT32_MAX;  // directed links used in the step that uses fewest
  bool neighbours_only = true;
  std::map<std::tuple<Rank, int, int>, double> link;  // member, dimension, direction: share of the vector
};

class LockstepRun {
 public:
  LockstepRun(const std::vector<Plan>& plans, std::vector<int> dims, uint32_t blocks, std::vector<double> speeds)
      : plans_(plans), dims_(std::move(dims)), speeds_(std::move(speeds)), blocks_(blocks) {
    speeds_.resize(dims_.size(), 1);
    for (const Plan& plan : plans) dependencies_.push_back(derive_dependencies(plan));
    for (const Dependencies& dependencies : dependencies_) executors_.emplace_back(dependencies);
  }

  Lockstep run() {
    ready_.resize(plans_.size());
    for (size_t r = 0; r < plans_.size(); ++r) executors_[r].start(ready_[r]);
    for (start_ready(); !matched_.empty(); start_ready()) step();
    return result_;
  }

 private:
  using Pipe = std::tuple<Rank, Rank, uint8_t>;
  struct Transfer {
    Rank from, to;
    uint32_t send, receive;
  };

  // Local steps take no time.
  void start_ready() {
    for (size_t r = 0; r < plans_.size(); ++r) {
      while (!ready_[r].empty()) {
        for (const uint32_t s : std::exchange(ready_[r], {})) start(static_cast<Rank>(r), s);
      }
    }
  }

  void start(Rank rank, uint32_t s) {
    const Step& step = plans_[static_cast<size_t>(rank)].steps[s];
    if (!step.is_transfer()) return executors_[static_cast<size_t>(rank)].done(s, ready_[static_cast<size_t>(rank)]);
    const Pipe pipe = step.is_receive() ? Pipe{step.peer, rank, step.channel} : Pipe{rank, step.peer, step.channel};
    auto& mine = (step.is_receive() ? receives_ : sends_)[pipe];
    auto& theirs = (step.is_receive() ? sends_ : receives_)[pipe];
    if (theirs.empty()) return mine.push_back(s);
    const uint32_t other = theirs.front();
    theirs.pop_front();
    step.is_receive() ? matched_.push_back({step.peer, rank, other, s})
                      : matched_.push_back({rank, step.peer, s, other});
  }

  void step() {
    std::map<std::tuple<Rank, int, int>, double> load;
    int longest = 0;
    for (const Transfer& transfer : std::exchange(matched_, {})) {
      const Step& send = plans_[static_cast<size_t>(transfer.from)].steps[transfer.send];
      const int hops = route(transfer.from, transfer.to, static_cast<double>(send.count) / blocks_, load);
      longest = std::max(longest, hops);
      done(transfer.from, transfer.send);
      done(transfer.to, transfer.receive);
    }
    double busiest = 0;
    for (const auto& [link, share] : load) {
      busiest = std::max(busiest, share / speeds_[static_cast<size_t>(std::get<1>(link))]);
      result_.link[link] += share;
    }
    ++result_.steps;
    result_.hops += longest;
    result_.neighbours_only &= longest <= 1;
    result_.time += busiest;
    result_.idlest = std::min(result_.idlest, static_cast<int>(load.size()));
  }

  void done(Rank rank, uint32_t s) { executors_[static_cast<size_t>(rank)].done(s, ready_[static_cast<size_t>(rank)]); }

  int route(Rank from, Rank to, double share, std::map<std::tuple<Rank, int, int>, double>& load) {
    int hops = 0;
    int stride = 1;
    for (size_t d = dims_.size(); d-- > 0; stride *= dims_[d]) {
      const int size = dims_[d];
      int way = ((to / stride - from / stride) % size + size) % size;
      if (2 * way > size) way -= size;
      for (; way != 0; way += way > 0 ? -1 : 1, ++hops) {
        const int direction = size == 2 ? 1 : way > 0 ? 1 : -1;
        load[{from, static_cast<int>(d), direction}] += share;
        const int at = from / stride % size;
        from += ((at + (way > 0 ? 1 : size - 1)) % size - at) * stride;
      }
    }
    return hops;
  }

  const std::vector<Plan>& plans_;
  std::vector<int> dims_;
  std::vector<double> speeds_;
  uint32_t blocks_;
  std::vector<Dependencies> dependencies_;
  std::vector<Executor> executors_;
  std::vector<std::vector<uint32_t>> ready_;
  std::map<Pipe, std::deque<uint32_t>> sends_, receives_;
  std::vector<Transfer> matched_;
  Lockstep result_;
};

// `blocks` make up the vector.
inline Lockstep run_in_lockstep(const std::vector<Plan>& plans, const std::vector<int>& dims, uint32_t blocks,
                                const std::vector<double>& speeds = {}) {
  return LockstepRun(plans, dims, blocks, speeds).run();
}

}  // namespace ccom
