// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "algorithms/node.h"
#include "base/assert.h"
#include "node/node_call.h"
#include "plan/fingerprint.h"
#include "plan/print.h"

namespace ccom {
namespace {

constexpr size_t kMostPlans = 64;

// Into how many parts a scheme cuts what it passes on as a whole.
uint32_t parts_of(const NodeShape& shape, int nranks) {
  switch (shape.scheme) {
    case NodeScheme::Domains: return static_cast<uint32_t>(shape.groups[0].size());
    case NodeScheme::GatherRelease: return 1;
    default: return static_cast<uint32_t>(nranks);
  }
}

bool overwrites_input(const NodeTask& task, Rank self) {
  if (task.collective == Collective::AllToAll) return true;
  if (!task.sums) return false;
  const std::vector<uint32_t>& gives = task.blocks.gives[static_cast<size_t>(self)];
  const std::vector<uint32_t>& gets = task.blocks.gets[static_cast<size_t>(self)];
  return std::ranges::any_of(gets, [&](uint32_t block) {
    if (std::ranges::find(gives, block) == gives.end()) return false;
    for (size_t rank = 0; rank < task.blocks.gets.size(); ++rank) {
      const std::vector<uint32_t>& theirs = task.blocks.gets[rank];
      if (rank != static_cast<size_t>(self) && std::ranges::find(theirs, block) != theirs.end()) return true;
    }
    return false;
  });
}

// What decides where ranks meet and which bytes they exchange. How a rank writes and leaves lines is its own affair.
uint32_t word_of(size_t way, const NodeChoice& choice) {
  uint64_t word = mix(mix(way) ^ choice.tile_bytes << 2 ^ (choice.asks ? 1 : 0) ^ (choice.reads ? 2 : 0));
  for (const NodeShape* shape : {&choice.staged, &choice.readable, &choice.mapped}) {
    word = mix(word ^ static_cast<uint64_t>(shape->scheme) << 1 ^ (shape->whole ? 1 : 0));
    for (const std::vector<Rank>& group : shape->groups) {
      word = mix(word ^ group.size());
      for (const Rank rank : group) word = mix(word ^ static_cast<uint64_t>(rank));
    }
  }
  return static_cast<uint32_t>(word);
}

}  // namespace

PreparedTask::PreparedTask(NodeTask task, std::vector<NodeChoice> ways, Rank local_rank)
    : task_(std::move(task)),
      ways_(std::move(ways)),
      local_rank_(local_rank),
      nobody_(static_cast<size_t>(task_.nranks)),
      overwrites_input_(ccom::overwrites_input(task_, local_rank)) {
  NodeTask plain = node_task(task_.collective, task_.nranks, task_.root);
  plain.completes = task_.completes;
  is_plain_ = task_ == plain;
  for (const std::vector<uint32_t>& gives : task_.blocks.gives) most_given_ = std::max(most_given_, gives.size());
  CCOM_ASSERT(!ways_.empty());
  for (const NodeChoice& way : ways_) {
    way_words_.push_back(word_of(way_words_.size(), way));
    uint32_t& least = least_parts_.emplace_back(static_cast<uint32_t>(task_.nranks));
    for (const NodeShape* shape : {&way.staged, &way.readable, &way.mapped})
      least = std::min(least, parts_of(*shape, task_.nranks));
  }
}

const std::string& PreparedTask::way_text(const Reach& reach) {
  std::string& text = way_texts_[{way_, reach.input, reach.output}];
  if (text.empty()) text = to_text(choice(), reach);
  return text;
}

const std::shared_ptr<MadePlan>& PreparedTask::find_or_make(bool in_place, std::span<const Reach> reach) {
  const auto found = std::ranges::find_if(made_, [&](const auto& made) {
    return made->way == way_ && made->in_place == in_place && std::ranges::equal(made->reach, reach);
  });
  if (found != made_.end()) {
    std::rotate(made_.begin(), found, found + 1);
  } else {
    if (made_.size() == kMostPlans) made_.pop_back();
    NodePlan plan = node_plan(task_, local_rank_, in_place, choice().shape_for(reach), reach);
    made_.insert(made_.begin(), std::make_shared<MadePlan>(
                                    MadePlan{way_, in_place, false, {reach.begin(), reach.end()}, std::move(plan)}));
  }
  return made_.front();
}

Result<std::shared_ptr<const MadePlan>> PreparedTask::plan(bool in_place, std::span<const Reach> reach,
                                                           const Prove& prove) {
  const std::shared_ptr<MadePlan>& found = find_or_make(in_place, reach);
  if (!found->is_proved && prove) CCOM_TRY(prove(task_, choice(), reach));
  found->is_proved = true;
  return std::shared_ptr<const MadePlan>(found);
}

}  // namespace ccom
