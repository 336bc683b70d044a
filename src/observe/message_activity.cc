// SPDX-License-Identifier: Apache-2.0
#include "observe/message_activity.h"

#include <algorithm>

#include "observe/shared_text.h"

namespace ccom {

std::string peer_text_of(const MessageEnd& end) {
  return (end.peer < 0 ? "any rank" : "rank " + std::to_string(end.peer)) + " (tag " + std::to_string(end.tag) + ", " +
         std::to_string(end.bytes) + " bytes)";
}

std::string text_of(const MessageEnd& end) { return (end.sends ? "send to " : "receive from ") + peer_text_of(end); }

void MessageActivity::Wait::note(Clock::time_point since) {
  constexpr int64_t kPauseNs = 100 * kNsPerMs;
  if (activity_ == nullptr || is_noted()) return;
  since_ns_ = since.time_since_epoch() / std::chrono::nanoseconds(1);
  const Lock lock(activity_->mutex_);
  if (waited_.threads++ == 0 && since_ns_ - waited_.until_ns > kPauseNs) waited_.since_ns = since_ns_;
  const auto free = std::ranges::find(activity_->waits_, nullptr);
  if (free == activity_->waits_.end()) return;
  *free = this;
  activity_->show_longest();
}

void MessageActivity::Wait::leave() {
  if (!is_noted()) return;
  const int64_t now_ns = monotonic_ns();
  const Lock lock(activity_->mutex_);
  --waited_.threads;
  waited_.until_ns = now_ns;
  waited_.ns.fetch_add(std::max<int64_t>(now_ns - since_ns_, 0), std::memory_order_relaxed);
  since_ns_ = 0;
  const auto own = std::ranges::find(activity_->waits_, this);
  if (own != activity_->waits_.end()) *own = nullptr;
  activity_->show_longest();
}

void MessageActivity::Wait::complete(Rank peer) {
  leave();
  if (waited_.ns.load(std::memory_order_relaxed) == 0) return;
  const auto ns = static_cast<uint64_t>(waited_.ns.exchange(0, std::memory_order_relaxed));
  activity_->writer_.count_wait({.collective = Collective::SendReceive, .bytes = end_.bytes, .ns = ns, .peer = peer});
}

void MessageActivity::show_longest() {
  const Wait* longest = nullptr;
  for (const Wait* wait : waits_)
    if (wait != nullptr && (longest == nullptr || wait->waited_.since_ns < longest->waited_.since_ns)) longest = wait;
  if (longest == shown_) return;
  shown_ = longest;
  ActivityRecord::Messages& messages = record_.messages;
  messages.lock.write([&] {
    messages.waits_since_ns.store(longest == nullptr ? 0 : static_cast<uint64_t>(longest->waited_.since_ns),
                                  std::memory_order_release);
    if (longest == nullptr) return;
    messages.sends.store(longest->end_.sends ? 1 : 0, std::memory_order_release);
    messages.peer.store(static_cast<uint64_t>(longest->end_.peer + 1), std::memory_order_release);
    messages.tag.store(static_cast<uint64_t>(longest->end_.tag), std::memory_order_release);
    messages.bytes.store(longest->end_.bytes, std::memory_order_release);
    store_text(messages.site, text_of(longest->site_));
  });
}

}  // namespace ccom
