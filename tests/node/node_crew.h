// SPDX-License-Identifier: Apache-2.0
//
// A host whose ranks are threads: shared segment, monitors and collectives, with a choice of what ranks reach.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "memory/arena.h"
#include "node/shm_collectives.h"

namespace ccom {

enum class Within { Nothing, Arenas, OneProcess };  // what ranks reach of each other

class NodeCrew {
 public:
  struct Settings {
    int ranks = 2;
    Within within = Within::Nothing;
    size_t bank_bytes = size_t{16} << 10;  // small: many tiles
    size_t small_bytes = 1024;
    bool reads = false;  // what is not mapped, through the kernel
    bool asymmetric = true;
    PreparedTask::Prove prove{};
  };
  explicit NodeCrew(const Settings& settings);
  ~NodeCrew();

  // run(rank, group) in a thread per rank, until all have returned.
  void run(const std::function<void(int, ShmCollectives&)>& run);
  // The rank's own, the same for equal tasks and choices.
  PreparedTask& prepared(int rank, const NodeTask& task, const NodeChoice& choice);
  ShmCollectives& group(int rank) { return *groups_[static_cast<size_t>(rank)]; }
  Monitor& monitor(int rank) { return *monitors_[static_cast<size_t>(rank)]; }
  int ranks() const { return settings_.ranks; }
  Arena& arena() { return *arena_; }
  // What that rank shows others in calls that are not small.
  std::span<std::byte> staging_of(int rank) const;

 private:
  const Settings settings_;
  std::unique_ptr<SharedSegment> segment_;
  std::unique_ptr<Arena> arena_;
  std::vector<std::unique_ptr<Monitor>> monitors_;
  std::vector<std::unique_ptr<ShmCollectives>> groups_;
  std::vector<std::vector<std::unique_ptr<PreparedTask>>> tasks_;  // by rank
};

// A call in place of all of `data`.
template <typename T>
NodeCall in_place_call(PreparedTask& task, std::vector<T>& data, DataType type = DataType::Float32) {
  auto* const memory = reinterpret_cast<std::byte*>(data.data());
  NodeCall call;
  call.task = &task;
  call.input = memory;
  call.output = memory;
  call.count = data.size();
  call.type = type;
  call.in_place = true;
  return call;
}

// Words that tell calls apart; equal on all ranks for equal arguments.
CallWords words_of(const NodeCall& call, uint64_t sequence);

}  // namespace ccom
