// SPDX-License-Identifier: Apache-2.0
#include "liveness/losses.h"

#include <algorithm>

#include "liveness/message.h"

namespace ccom {

bool Losses::add(const Status& loss, int64_t now_ns) {
  if (losses_.empty()) first_ns_ = now_ns;
  const size_t known = ranks_.size();
  for (const Rank rank : loss.peers()) {
    const auto at = std::ranges::lower_bound(ranks_, rank);
    if (at == ranks_.end() || *at != rank) ranks_.insert(at, rank);
  }
  if (ranks_.size() > known) {
    losses_.push_back(loss);
    return true;
  }
  const auto vague = std::ranges::find_if(losses_, [&loss](const Status& other) {
    return other.key() == ErrorKey::RankUnreachable && other.peers() == loss.peers();
  });
  if (vague == losses_.end() || loss.key() == ErrorKey::RankUnreachable) return false;
  *vague = loss;
  return true;
}

Status Losses::error() const {
  CCOM_ASSERT(!losses_.empty());
  const auto whole = std::ranges::find_if(losses_, [this](const Status& loss) { return loss.peers() == ranks_; });
  if (whole != losses_.end()) return *whole;
  constexpr size_t kMostTexts = 3;  // the text has a limit
  std::string text = name_ranks(ranks_) + " were lost at once: " + losses_.front().message();
  for (size_t i = 1; i < std::min(losses_.size(), kMostTexts); ++i) text += "; " + losses_[i].message();
  if (losses_.size() > kMostTexts) text += "; ...";
  return Status(losses_.front().key(), std::move(text))
      .with_peers({ranks_.begin(), ranks_.end()})
      .with_host(losses_.front().host())
      .with_cure(losses_.front().cure());
}

}  // namespace ccom
