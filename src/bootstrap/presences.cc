// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/presences.h"

#include <algorithm>

namespace ccom {

void Presences::begin(const Caller& caller, PendingCall* call, FinishedCalls& finished) {
  end(caller, finished);
  calls_.emplace(caller.token, Presence{.call = call, .caller = caller});
  call->acknowledge();
}

void Presences::end(const Caller& caller, FinishedCalls& finished) {
  const auto found = calls_.find(caller.token);
  if (found == calls_.end()) return;
  finished.add(found->second.call, answer_);
  calls_.erase(found);
}

void Presences::end_all(FinishedCalls& finished) {
  for (const auto& [token, presence] : calls_) finished.add(presence.call, answer_);
  calls_.clear();
}

void Presences::refuse_all(Refusal refusal, FinishedCalls& finished) {
  for (const auto& [token, presence] : calls_) finished.add(presence.call, refusal);
  calls_.clear();
}

std::optional<Caller> Presences::forget(const PendingCall* call) {
  const auto found = std::ranges::find_if(calls_, [call](const auto& entry) { return entry.second.call == call; });
  if (found == calls_.end()) return {};
  Caller caller = std::move(found->second.caller);
  calls_.erase(found);
  return caller;
}

}  // namespace ccom
