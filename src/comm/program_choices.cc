// SPDX-License-Identifier: Apache-2.0
#include "comm/program_choices.h"

#include <algorithm>

namespace ccom {

// Plans of the user's are not compared: nobody shares them.
bool ProgramChoices::are_for(const Topology& topology, const Settings& settings) const {
  return settings_.plans.empty() && settings.plans.empty() && settings_.forced == settings.forced &&
         settings_.preferred == settings.preferred && settings_.order == settings.order &&
         settings_.rounds_once == settings.rounds_once && settings_.wire == settings.wire &&
         settings_.shared_memory == settings.shared_memory && settings_.scratch_bytes == settings.scratch_bytes &&
         settings_.most_channels == settings.most_channels && settings_.has_ways == settings.has_ways &&
         topology_ == topology;
}

Result<ProgramChoices::Chosen*> ProgramChoices::get(const Question& question) {
  const Lock lock(mutex_);
  std::unique_ptr<Chosen>& chosen =
      chosen_[{question.collective, question.narrow_float, question.rounds_once, question.narrow_bytes, question.is_v,
               question.order, question.root, question.bytes, question.wire}];
  if (chosen == nullptr) {
    CCOM_TRY_ASSIGN(Choice made, choose(topology_, settings_, question));
    chosen = std::make_unique<Chosen>(std::move(made));
  }
  return chosen.get();
}

size_t ProgramChoices::small_bytes(int host, bool is_rooted) {
  const Lock lock(mutex_);
  const auto [known, is_new] = small_bytes_.try_emplace({host, is_rooted});
  if (is_new) known->second = small_call_bytes(topology_, host, is_rooted);
  return known->second;
}

std::shared_ptr<ProgramChoices> SharedChoices::of(const Topology& topology, Settings settings) {
  const Lock lock(mutex_);
  const auto known = std::ranges::find_if(latest_, [&](const auto& each) { return each->are_for(topology, settings); });
  if (known != latest_.end()) {
    std::rotate(known, known + 1, latest_.end());
    return latest_.back();
  }
  if (latest_.size() == kKept) latest_.erase(latest_.begin());
  latest_.push_back(std::make_shared<ProgramChoices>(topology, std::move(settings)));
  return latest_.back();
}

}  // namespace ccom
