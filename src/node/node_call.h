// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a host are asked to do through shared memory: one call, and what calls of the same kind share.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "kernels/kernels.h"
#include "plan/node_plan.h"

namespace ccom {

// A rank's plan for a way and who can be reached.
struct MadePlan {
  size_t way = 0;
  bool in_place = false;
  bool is_proved = false;
  std::vector<Reach> reach;
  NodePlan plan;
};

// A task with the ways it may run, and this rank's plans for it, made when a call first needs them. Whoever makes the
// calls keeps one for each task and choice: calls of a known task compile nothing. Belongs to one thread at a time.
class PreparedTask {
 public:
  // Called before a plan runs for the first time, when it is known who can be reached and no output is written yet. An
  // error fails the call. Any rank may be in place but those whose input is reached in an AllToAll.
  using Prove = std::function<Status(const NodeTask&, const NodeChoice&, std::span<const Reach>)>;

  // ways: at least one. All compute the same expressions.
  PreparedTask(NodeTask task, std::vector<NodeChoice> ways, Rank local_rank);

  const NodeTask& task() const { return task_; }
  const std::vector<NodeChoice>& ways() const { return ways_; }
  // The way that the next call runs, the first one until something else is said. Equal on all ranks.
  void use(size_t way) { way_ = way; }
  size_t way() const { return way_; }
  const NodeChoice& choice() const { return ways_[way_]; }
  // Stands for the way and all of its choice that must be equal on all ranks.
  uint32_t way_word() const { return way_words_[way_]; }
  // The way, and who could be reached, as text (plan/print.h).
  const std::string& way_text(const Reach& reach);
  // node_task(collective, nranks, root), completing or not.
  bool is_plain() const { return is_plain_; }
  // Most units that any rank gives.
  size_t most_given() const { return most_given_; }
  // Into how many parts a tile is cut at least where sums are passed on through staging memory.
  uint32_t least_parts() const { return least_parts_[way_]; }
  // In place, this rank writes to a unit of its input that others read as well.
  bool overwrites_input() const { return overwrites_input_; }
  // The reach of all ranks if nobody is reached.
  std::span<const Reach> nobody() const { return nobody_; }

  // Its phase 0 is the same for every reach, if this rank's input is not reached.
  std::shared_ptr<const MadePlan> opening(bool in_place) { return find_or_make(in_place, nobody_); }
  Result<std::shared_ptr<const MadePlan>> plan(bool in_place, std::span<const Reach> reach, const Prove& prove);

 private:
  const std::shared_ptr<MadePlan>& find_or_make(bool in_place, std::span<const Reach> reach);

  bool is_plain_ = false;
  const NodeTask task_;
  const std::vector<NodeChoice> ways_;
  std::vector<uint32_t> least_parts_;  // by way
  std::vector<uint32_t> way_words_;
  size_t way_ = 0;
  const Rank local_rank_;
  const std::vector<Reach> nobody_;
  size_t most_given_ = 0;
  bool overwrites_input_ = false;
  std::vector<std::shared_ptr<MadePlan>> made_;                      // the latest first
  std::map<std::tuple<size_t, bool, bool>, std::string> way_texts_;  // by way and reach
};

// Where the units of a call lie, by local rank and unit, in the order of NodeTask::blocks: bytes from that rank's
// NodeCall::input or output. The units that a rank gives lie in one buffer. Of other ranks' units that are got only
// those of AllReduce and Reduce are looked at.
struct NodeViews {
  std::vector<std::vector<int64_t>> given, got;
  std::vector<size_t> block_elements;  // by block, none more than NodeCall::count; empty: all blocks have so many
};

class BoundCall;

// Buffers are borrowed. Equal on all ranks but for addresses and in_place.
struct NodeCall {
  PreparedTask* task = nullptr;
  BoundCall* bound = nullptr;        // kept from calls of the same task, lengths, type and views; null: nothing is
  const NodeViews* views = nullptr;  // null: units follow one another
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  size_t count = 0;  // elements of a unit, of the longest if they differ
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  uint32_t divide_by = 0;  // Avg: the contributions of all stages, for tasks that complete
  bool in_place = false;   // a block that this rank gives and gets lies at one address (AllToAll: one buffer)
  Rounding rounding = Rounding::NearestEven;
  uint64_t seed = 0;  // with it, random bits belong to an element's index in the input of the first who gives it
  UserOperator* user = nullptr;  // User and UserOrdered

  size_t element_bytes() const { return size_of(type); }
  // Asked after each reduction: nobody is shown what a user's operator has failed to make.
  Status operator_status() const { return user != nullptr && user->has_failed() ? user->failure() : Status(); }
  size_t unit_bytes() const { return count * size_of(type); }
};

}  // namespace ccom
