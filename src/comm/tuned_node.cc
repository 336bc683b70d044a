// SPDX-License-Identifier: Apache-2.0
#include "comm/tuned_node.h"

#include <algorithm>

namespace ccom {
namespace {

constexpr size_t kMostTasks = 32;

NodeConfig with_small_calls(NodeConfig config, const NodeTuning& tuning) {
  config.small_bytes.fill(tuning.groups.empty() ? tuning.small_bytes : 0);
  return config;
}

}  // namespace

TunedNode::TunedNode(NodeConfig config, NodeTuning tuning, Monitor& monitor, FlagBarrier::Describe describe,
                     ShmCollectives::Fail fail)
    : tuning_(std::move(tuning)),
      ranks_(static_cast<int>(config.barrier.ranks.size())),
      local_rank_(config.barrier.local_rank),
      node_(with_small_calls(std::move(config), tuning_), monitor, std::move(describe), std::move(fail)),
      small_(static_cast<size_t>(Collective::SendReceive)) {
  for (auto& by_root : small_) by_root.resize(static_cast<size_t>(ranks_) + 1);
}

NodeChoice TunedNode::choice(const TunedCall& call) const {
  const size_t unit = call.count * size_of(call.type);
  const size_t shown = shown_bytes(call.collective, ranks_, unit);
  const bool cuts_vector = reduces(call.collective) && !is_per_rank(call.collective);
  const bool pulls = call.collective == Collective::AllReduce && shown >= tuning_.pull_from_bytes &&
                     shown <= tuning_.pull_to_bytes;
  const auto shape = [&](Reach reach) {
    const std::vector<Reach> all(static_cast<size_t>(ranks_), reach);
    return node_shape(tuning_, {call.collective, unit, is_narrow_float(call.type)}, all);
  };
  NodeChoice choice;
  choice.asks = shown > tuning_.small_bytes;
  choice.reads = cuts_vector ? pulls : shown >= tuning_.read_bytes;
  choice.streams = total_units(call.collective, ranks_) * unit >= tuning_.stream_bytes;
  choice.staged = shape({false, false});
  choice.readable = shape({true, false});
  choice.mapped = shape({true, true});
  return choice;
}

PreparedTask& TunedNode::prepared(const TunedCall& call) {
  const NodeChoice choice = this->choice(call);
  const auto is_like = [&](const auto& task) {
    return task->task().collective == call.collective && task->task().root == call.root && task->choice() == choice;
  };
  const auto found = std::ranges::find_if(others_, is_like);
  if (found != others_.end()) {
    std::rotate(others_.begin(), found, found + 1);
  } else {
    if (others_.size() == kMostTasks) others_.pop_back();
    others_.insert(others_.begin(), std::make_unique<PreparedTask>(node_task(call.collective, ranks_, call.root),
                                                                   choice, local_rank_));
  }
  return *others_.front();
}

NodeViews TunedNode::views(const TunedCall& call) const {
  const BlockLists lists = node_task(call.collective, ranks_, call.root).blocks;
  const auto offsets = [&](const std::vector<std::vector<uint32_t>>& units) {
    std::vector<std::vector<int64_t>> by_rank;
    for (const std::vector<uint32_t>& of_rank : units) {
      by_rank.emplace_back();
      for (size_t unit = 0; unit < of_rank.size(); ++unit)
        by_rank.back().push_back(static_cast<int64_t>(unit * call.unit_stride * size_of(call.type)));
    }
    return by_rank;
  };
  return {offsets(lists.gives), offsets(lists.gets), {}};
}

Status TunedNode::run(const TunedCall& call, const CallWords& words, std::chrono::milliseconds timeout) {
  NodeCall node{.task = nullptr,
                .views = nullptr,
                .input = call.input,
                .output = call.output,
                .count = call.count,
                .type = call.type,
                .op = call.op,
                .divide_by = static_cast<uint32_t>(ranks_),
                .in_place = call.in_place,
                .rounding = call.rounding,
                .seed = call.seed};
  const bool is_whole = call.unit_stride == 0 || call.unit_stride == call.count;
  const bool is_small =
      tuning_.groups.empty() && shown_bytes(call.collective, ranks_, node.unit_bytes()) <= tuning_.small_bytes;
  if (is_whole && is_small) {
    auto& small = small_[static_cast<size_t>(call.collective)][static_cast<size_t>(call.root + 1)];
    if (small == nullptr)
      small = std::make_unique<PreparedTask>(node_task(call.collective, ranks_, call.root), choice(call), local_rank_);
    node.task = small.get();
    return node_.run(node, words, timeout);
  }
  node.task = &prepared(call);
  if (is_whole) return node_.run(node, words, timeout);
  const NodeViews strided = views(call);
  node.views = &strided;
  return node_.run(node, words, timeout);
}

}  // namespace ccom
